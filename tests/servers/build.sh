#!/bin/sh
# bash builds a small C project with make -j2, and runs what it built.
. "$ROOT/tests/servers/lib.sh"
need bash make gcc ar

project()
{
	mkdir src
	for i in 1 2 3 4 5 6; do
		printf '#include "all.h"\nint f%s(int n) { return n * %s; }\n' $i $i >src/f$i.c
	done
	for i in 1 2 3 4 5 6; do echo "int f$i(int n);"; done >src/all.h
	cat >src/main.c <<-'END'
	#include <stdio.h>
	#include "all.h"
	int main(void)
	{
		return printf("%d\n", f1(1) + f2(2) + f3(3) + f4(4) + f5(5) + f6(6)) < 0;
	}
	END
	printf '%s\n' 'objs := f1.o f2.o f3.o f4.o f5.o f6.o' \
		'all: prog' 'prog: main.o libf.a' '	@gcc -o $@ $^' \
		'libf.a: $(objs)' '	@ar rcs $@ $^' \
		'%.o: %.c all.h' '	@gcc -O1 -Wall -c -o $@ $<' \
		'clean:' '	@rm -f *.o *.a prog' '.PHONY: all clean' >src/Makefile
}

work()
{
	project
	( under bash -c '
		set -eo pipefail
		cd src
		make -s -j2
		./prog
		touch all.h
		make -s -j2
		echo $(./prog) again
		make -s clean
		ls | sort | tr "\n" " "
		echo
		mapfile -t lines < <(seq 3)
		echo "${lines[@]}" | while read -r a b c; do echo "$c $b $a"; done
		coproc cat
		echo through a coprocess >&"${COPROC[1]}"
		read -r -u "${COPROC[0]}" line
		echo "$line"
		sleep 30 & kill $!; wait $! || echo "killed: $?"
		trap "echo trapped" USR1; kill -USR1 $$
		diff <(echo one) <(echo two) || echo "differ: $?"
		exit 12
	' 2>&1 )
	echo "bash: $?"
}

in_each_mode work
