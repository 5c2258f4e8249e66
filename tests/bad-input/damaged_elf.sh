#!/bin/sh
# ELF files that the kernel refuses, or worse, begins to load: 126 each, but
# for a file cut within its segments, which may instead die as it would alone.
. "$ROOT/tests/lib.sh"

run="$MVE run -n $MVE_SESSION --"
good=$TESTS/die

# damage NAME OFFSET BYTES: a copy of a good file with some bytes changed
damage()
{
	cp "$good" "$1"
	printf "$3" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

damage machine 18 '\003\000'		# i386
damage arm 18 '\267\000'		# aarch64
damage type 16 '\001\000'		# a relocatable object
damage phoff 32 '\377\377\377\377'	# headers far beyond the end
damage phnum 56 '\377\377'
damage phentsize 54 '\001\000'
for cut in 4 16 63 64 100; do
	head -c $cut "$good" >cut$cut
done
for file in machine arm type phoff phnum phentsize \
	    cut4 cut16 cut63 cut64 cut100; do
	chmod 755 $file
	./$file >/dev/null 2>&1 && fail "$file runs natively"
	refused 126 "./$file: " $run ./$file
done

# A real 32-bit program: 52 bytes of header, one segment.
printf '\177ELF\001\001\001\000\000\000\000\000\000\000\000\000' >elf32
printf '\002\000\003\000\001\000\000\000\124\200\004\010\064\000\000\000' >>elf32
printf '\000\000\000\000\000\000\000\000\064\000\040\000\001\000\050\000' >>elf32
printf '\000\000\000\000\001\000\000\000\000\000\000\000\000\200\004\010' >>elf32
printf '\000\200\004\010\140\000\000\000\140\000\000\000\005\000\000\000' >>elf32
printf '\000\020\000\000\270\001\000\000\000\315\200\220\220\220\220\220' >>elf32
chmod 755 elf32
refused 126 "32" $run ./elf32

# Cut within its segments: as natively (a signal) or refused, and no hang.
size=$(wc -c <"$good")
for part in 2 3 4; do
	head -c $((size / part)) "$good" >part$part
	chmod 755 part$part
	./part$part >/dev/null 2>&1
	native=$?
	timeout 20 $run ./part$part >out 2>err
	status=$?
	[ $status = $native ] || [ $status = 126 ] ||
		fail "part$part: status $status, natively $native"
	clean
done
