# Work for a shell: pipelines, subshells, traps, background jobs, job control,
# here documents, process substitution, redirection of every kind.
set -e

check() { [ "$2" = "$3" ] || { echo "$1: got '$2', not '$3'" >&2; exit 1; }; }

check pipeline "$(seq 1000 | grep 7 | sort -rn | head -1)" 997
check nested "$(echo $(echo $(echo $(echo deep))))" deep
check subshell "$( (cd /; pwd) )" /
check here "$(cat <<END
line
END
)" line
check substitution "$(paste <(echo a) <(echo b))" "a	b"

status=0; (exit 37) || status=$?
check status $status 37
status=0; sh -c 'kill -SEGV $$' 2>/dev/null || status=$?
check signalled $status 139
status=0; true | false | true || status=$?
check last $status 0
set -o pipefail
status=0; (true | exit 5 | true) || status=$?
check pipefail $status 5

for i in 1 2 3 4 5 6 7 8 9 10; do
	(sleep 0.01; exit $i) &
	pids="$pids $!"
done
sum=0
for pid in $pids; do
	status=0; wait $pid || status=$?
	sum=$((sum + status))
done
check background $sum 55

got=no
trap 'got=yes' USR1
kill -USR1 $$
check trapped $got yes
check ignored "$(trap '' TERM; sh -c 'kill -TERM $$; echo alive')" alive

set -m
sleep 100 &
job=$!
kill -STOP %1
kill -CONT %1
kill %1
# By its id: a job that has ended before is no job any more.
status=0; wait $job || status=$?
check job $status 143
set +m

exec 5>file
echo one >&5
exec 5>&-
echo two >>file
check file "$(tr '\n' ' ' <file)" "one two "
mkfifo fifo
(echo through >fifo) &
check fifo "$(cat fifo)" through
wait

coproc cat
echo word >&${COPROC[1]}
read -r word <&${COPROC[0]}
check coprocess "$word" word
kill $COPROC_PID
wait $COPROC_PID || true

total=0
for i in $(seq 100); do
	total=$((total + $(/bin/echo 1)))
done
check many $total 100
echo "shell: ok"
