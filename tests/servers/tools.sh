#!/bin/sh
# Everyday programs: perl, tar, gzip, find, sort, xargs, git; each under mve.
. "$ROOT/tests/servers/lib.sh"
need perl tar gzip find sort git xargs

run()
{
	( under "$@" ) 2>&1
	echo "$1: $?"
	session_ended
}

# HOME is the folder: no user's settings come in.
git_work='
	set -e
	export HOME=$PWD GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_DATE="1700000000 +0000"
	export GIT_COMMITTER_DATE="1700000000 +0000"
	git init -q -b trunk one
	cd one
	git config user.name me
	git config user.email me@example.invalid
	for i in 1 2 3 4 5; do
		seq $((i * 100)) >file-$i
		git add .
		git commit -qm "commit $i"
	done
	git checkout -qb side HEAD~2
	echo side >side
	git add side
	git commit -qm side
	git checkout -q trunk
	git merge -q -m merge side
	git log --format="%h %s" --graph
	git repack -qad
	git fsck --no-progress
	cd ..
	git clone -q file://$PWD/one two
	git -C two log --oneline | wc -l
	git -C two grep -c 99 HEAD | sort
	git -C two bisect start HEAD HEAD~3 | head -1
'

perl_work='
	use strict; use IO::Select; use IO::Socket::INET; use POSIX;
	$SIG{ALRM} = sub { print "alarm\n" };
	pipe(my $r, my $w); my $pid = fork;
	if (!$pid) { print $w "child says $_\n" for 1..3; close $w; POSIX::_exit(7) }
	close $w; print while <$r>; waitpid($pid, 0); print "child: ", $? >> 8, "\n";
	print "sorted: @{[sort { $a <=> $b } map { $_ * 7 % 13 } 1..12]}\n";
	my $l = IO::Socket::INET->new(Listen => 5, LocalAddr => "127.0.0.1");
	my $c = IO::Socket::INET->new(PeerAddr => "127.0.0.1", PeerPort => $l->sockport);
	my $s = $l->accept; print $c "over tcp\n"; $c->flush;
	print "ready\n" if IO::Select->new($s)->can_read(2); print scalar <$s>;
	alarm 1; pause(); print `echo back; exit 2`; print "ticks: ", $? >> 8, "\n";
	exec "echo", "replaced" or die;
'

work()
{
	mkdir tree
	for i in 1 2 3 4 5 6 7 8 9; do
		mkdir -p "tree/d$i/e"
		seq $((i * 1000)) >"tree/d$i/e/numbers"
		ln -s numbers "tree/d$i/e/link"
	done
	run sh -c 'tar cf - tree | gzip -9 | gzip -d | tar xf - -C . --transform s,tree,copy, && diff -r tree copy'
	run sh -c 'find tree -type f | sort | xargs -n 2 cat | sort -n --parallel=2 -S 200k | uniq -c | sort -k1,1nr -k2n | head -5'
	run sh -c 'find copy -type l -printf "%P %l\n" -delete | sort; find copy | wc -l'
	run tar czf all.tgz tree
	run tar tzf all.tgz
	run perl -e "$perl_work"
	run sh -c "$git_work"
	run timeout 0.3 sleep 20
	run sh -c 'yes | head -c 1000000 | cksum; dd if=/dev/zero bs=64k count=20 status=none | cksum; cat <<-END
	here
	END'
}

in_each_mode work
