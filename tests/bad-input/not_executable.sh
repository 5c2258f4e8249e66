#!/bin/sh
# A program that is there and cannot be run: 126.
. "$ROOT/tests/lib.sh"

run="$MVE run -n $MVE_SESSION --"
echo text >plain
chmod 644 plain
refused 126 "./plain: permission" $run ./plain
refused 126 "/etc: .*directory" $run /etc
echo "#!/none/interpreter" >lost
chmod 755 lost
refused "126|127" "./lost: " $run ./lost	# dash and bash differ
: >empty
chmod 755 empty
refused 126 "./empty: " $run ./empty
