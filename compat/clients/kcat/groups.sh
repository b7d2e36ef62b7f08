# shellcheck shell=bash
# The checks of consumer groups, sourced by run. Every member is a kcat. What
# it says of its partitions comes through one pipe, after the member's number.

mkfifo "$tmp/said" && exec {said}<>"$tmp/said"
readonly patience=45 # for a group to settle, in seconds
readonly -a member=(-X auto.offset.reset=earliest -X session.timeout.ms=6000 -X heartbeat.interval.ms=200 -X fetch.wait.max.ms=100)
declare -A pids=() held=() told=() # by number

join() { # join NUMBER ARGS: one more in $group
	held[$1]='' told[$1]=0
	kcat "${login[@]}" -X "sasl.password=$QUEEN_EDGE_TOKEN_ACME" -G "$group" "${member[@]}" "${@:2}" "$COMPAT_GROUP_TOPIC" \
		>/dev/null 2> >(sed -u "s/^/$1 /" >"$tmp/said") &
	pids[$1]=$!
}

leave() { # leave SIGNAL NUMBER…: all are told before one is waited for
	local number
	for number in "${@:2}"; do kill "-$1" "${pids[$number]}"; done
	for number in "${@:2}"; do
		timeout 10 tail --pid="${pids[$number]}" -s 0.05 -f /dev/null || kill -KILL "${pids[$number]}"
		wait "${pids[$number]}" 2>/dev/null
		unset "pids[$number]" "held[$number]" "told[$number]"
	done
}

hear() { # hear NUMBER LINE: what a member was given or has to give back
	local -r eager='rebalanced \(memberid [^)]*\): (assign|revo)[a-z]*:(.*)$'
	local -r incremental='rebalanced: incremental (assign|revo)[a-z]* of .* rebalance protocol\):(.*)$'
	echo "$1 $2" >&2
	# Not of one that has left, nor of an earlier check.
	[[ -n ${held[$1]+is} && $2 == *" $group "* ]] || return 0
	[[ $2 =~ $eager || $2 =~ $incremental ]] || return 0
	local what=${BASH_REMATCH[1]} p
	for p in $(grep -o '\[[0-9]*\]' <<<"${BASH_REMATCH[2]}" | tr -d '[]'); do
		case $what in
		assign) held[$1]+="$p " ;;
		revo) held[$1]=${held[$1]/"$p "/} ;;
		esac
	done
	[[ $what == revo ]] || told[$1]=$((told[$1] + 1))
}

settled() { # each was told, each partition is held once, and none holds nothing that need not
	local number idle=0 all=''
	for number in "${!held[@]}"; do
		((told[$number])) || return 1
		[[ -n ${held[$number]} ]] || idle=$((idle + 1))
		all+=${held[$number]}
	done
	[[ $(tr ' ' '\n' <<<"${all% }" | sort | tr '\n' ' ') == '0 1 2 3 ' ]] || return 1
	((idle == (${#held[@]} > 4 ? ${#held[@]} - 4 : 0)))
}

settle() {
	local number line end=$((SECONDS + patience))
	until settled; do
		((SECONDS < end)) && read -r -t $((end - SECONDS)) -u "$said" number line ||
			{ why="the group did not settle: $(declare -p held)"; return 1; }
		hear "$number" "$line"
	done
}

show() { # show CHECK
	local number i=0 list
	for number in $(tr ' ' '\n' <<<"${!held[*]}" | sort -n); do
		list=$(tr ' ' '\n' <<<"${held[$number]% }" | sort | paste -sd,)
		echo "member $1 $i ${list:-none}"
		i=$((i + 1))
	done
}

in_group() { # in_group COMMAND… CHECK: in a group of its own, which all have left afterwards
	local group="$COMPAT_RUN-kcat-${version//\//_}-${!#}" status=0
	echo "group ${!#} $group"
	"$@" || status=$?
	leave TERM "${!pids[@]}"
	return "$status"
}

resume() {
	local turn
	for turn in first second; do
		k "$QUEEN_EDGE_TOKEN_ACME" -G "$group" "${member[@]}" -c $((2 * COMPAT_GROUP_COUNT)) -f "got $1 %p %o\n" "$COMPAT_GROUP_TOPIC" ||
			{ failed "$turn"; return 1; }
	done
}

share() { # share COUNT ARGS… CHECK: cooperative ones settle before the next comes, so that partitions change hands
	local i
	for ((i = 0; i < $1; i++)); do
		join "$i" "${@:2:$#-2}"
		[[ $* != *cooperative-sticky* ]] || settle || return 1
	done
	settle && show "${!#}"
}

killed() {
	join 0
	join 1
	settle && leave KILL 1 && settle && show "$1"
}

static() {
	join 0 -X group.instance.id=stays
	join 1 -X group.instance.id=restarts
	settle || return 1
	local before=${told[0]}
	leave TERM 1
	join 2 -X group.instance.id=restarts
	settle || return 1
	echo "rebalances $1 $before ${told[0]}"
	show "$1"
}

check group-resume in_group resume
check group-3 in_group share 3
check group-10 in_group share 10
check group-cooperative in_group share 3 -X partition.assignment.strategy=cooperative-sticky
check group-killed in_group killed
check group-static in_group static
