# Runs on each host of a fleet and on the machine of the controller: sh -c THIS fleet VERB ID VERSION PROGRAM [WORD...]
#
# ID is the folder of the process below ~/.skippipe/fleet. PROGRAM is the path of skippipe; "": the script searches for
# a skippipe of VERSION. The first line of output is "@ here"; the login shell may have written lines before it. Answers
# are lines "@ KEY VALUE". All other lines come from programs.
#
#   check KEY        reports the processor, the system, the free disk, the installed skippipe, the running process, and if
#                    the file KEY or KEY.NUMBER exists
#   install STAMP    unpacks the bundle on standard input
#   start FOLDER WORD...  runs skippipe with these words in the folder, detached; the token is on standard input
#   state [RUN [N]]  reports if the process runs, its nodes (from the log after the first N bytes), the last line of the
#                    log, and if the folder RUN has a record
#   logs N           prints the last N lines of the log
#   follow N         prints the last N lines of the log, and then new lines until standard input ends
#   doctor WORD...   counts the GPUs, and runs skippipe doctor if this version has it
#   run WORD...      runs skippipe and waits for its end
#   forget ID... -- NAME...  revokes these invitations, and expels the agents with these names
#   stop S [purge]   ends the process, by SIGKILL after S seconds, and removes its folder; purge: also removes the
#                    bundle, unless another fleet uses it
set -u
mask=$(umask)
umask 077
verb=$1 id=$2 version=$3 program=$4
shift 4
exec 2>&1 # in one pipe, lines stay whole and in order; ssh would use two pipes
printf "\n@ here\n"
cd "$HOME" || exit 1
root=$HOME/.skippipe
dir=$root/fleet/$id
say() { printf "@ %s %s\n" "$1" "${2-}"; }
fail() { say failed "$1"; exit 1; }

# Sets program to a skippipe of this version, in PATH or in the bundle. Fails if there is none.
find_program() {
	[ -z "$program" ] || return 0
	for program in "$(command -v skippipe)" "$root/$version/bin/skippipe"; do
		[ ! -x "$program" ] || [ "$("$program" --version 2>/dev/null)" != "skippipe $version" ] || return 0
	done
	program=
	return 1
}

# Reports how many GPUs the agent can use.
say_gpus() { say gpus "$("$program" agent --devices 2>/dev/null | grep -c "^cuda:")"; }

# Prints when a living process began, in ticks since the boot.
began() { # began PID
	set -- $(sed "s/.*) //" "/proc/$1/stat" 2>/dev/null)
	[ $# -ge 20 ] && [ "$1" != Z ] && [ "$1" != X ] || return 1
	shift 19
	echo "$1"
}

# Returns true and sets pid if the recorded process is alive. Another process with the same id does not count: the time
# of its start, or the boot, differs from the recorded one.
running() {
	pid= start= boot=
	read -r pid start boot 2>/dev/null <"$dir/pid" || return 1
	[ "$(began "$pid")" = "$start" ] && [ "$boot" = "$(cat /proc/sys/kernel/random/boot_id)" ]
}

# Prints the processes with the mark of this folder in their environment: the recorded process, and those it started.
marked() {
	for file in $(grep -lsF "SKIPPIPE_FLEET=$id:" /proc/[0-9]*/environ 2>/dev/null); do
		p=${file#/proc/}
		p=${p%/environ}
		began "$p" >/dev/null && echo "$p"
	done
}

# Runs a command of systemd for 5 s at most. It may wait for ever if its bus does not answer, for example in a container.
briefly() {
	command -v timeout >/dev/null || { "$@"; return; }
	timeout 5 "$@"
}

# Returns true if systemd keeps the units of this user running when no session is open.
lingers() {
	command -v systemd-run >/dev/null && command -v loginctl >/dev/null || return 1
	export XDG_RUNTIME_DIR="${XDG_RUNTIME_DIR:-/run/user/$(id -u)}"
	[ "$(briefly loginctl show-user "$(id -un)" -p Linger 2>/dev/null)" = Linger=yes ] &&
		briefly systemctl --user show-environment >/dev/null 2>&1
}

# Returns true if systemd ends all processes of this user when the last session of the user ends. It spares root, unless
# its configuration names users to exclude or to include.
is_ended_at_logout() {
	command -v busctl >/dev/null || return 1
	set -- $(briefly busctl get-property org.freedesktop.login1 /org/freedesktop/login1 \
		org.freedesktop.login1.Manager KillUserProcesses KillExcludeUsers KillOnlyUsers 2>/dev/null)
	[ "${2:-}" = true ] || return 1
	case " $* " in
	*" \"$(id -un)\" "*) return 1 ;;
	*" as 0 as 0 ") [ "$(id -u)" != 0 ] || return 1 ;;
	esac
}

# Writes a script that records its own process and then becomes skippipe. Thus no skippipe runs unrecorded.
write_runner() {
	cat >"$dir/run" <<\END
set -u
dir=$1
exec </dev/null >>"$dir/log" 2>&1
[ ! -s "$dir/token" ] || export SKIPPIPE_JOIN="@$dir/token"
SKIPPIPE_FLEET=$(cat "$dir/mark")
export SKIPPIPE_FLEET
# The environment of a rented machine, which ssh does not pass on, says how the machine is reached.
for word in $(tr "\0" "\n" 2>/dev/null </proc/1/environ |
	grep -E "^(PUBLIC_IPADDR|RUNPOD_PUBLIC_IP|(VAST|RUNPOD)_TCP_PORT_[0-9]+)=[0-9.]+\$"); do
	export "$word"
done
set --
while IFS= read -r word; do set -- "$@" "$word"; done <"$dir/words"
umask "$1"
cd "$2" || exit 1
shift 2
began=$(sed "s/.*) //" /proc/$$/stat | cut -d " " -f 20)
echo "$$ $began $(cat /proc/sys/kernel/random/boot_id)" >"$dir/pid.part" &&
	mv "$dir/pid.part" "$dir/pid" || exit 1
exec "$@"
END
}

start() { # start FOLDER WORD...
	how=detached
	[ ! -e "$dir/log" ] || mv -f "$dir/log" "$dir/log.1"
	rm -f "$dir/pid"
	folder=$1
	shift
	printf "%s\n" "$mask" "$folder" "$program" "$@" >"$dir/words"
	echo "$id:" >"$dir/mark"
	write_runner
	unit=skippipe-$(echo "$id" | tr -c "a-zA-Z0-9\n" -)
	if lingers && systemd-run --user --quiet --collect --unit="$unit" sh "$dir/run" "$dir" 2>/dev/null; then
		how=systemd
	elif is_ended_at_logout; then
		fail "systemd would end the agent when you log out (KillUserProcesses): run loginctl enable-linger there"
	else
		setsid sh "$dir/run" "$dir" </dev/null >"$dir/log" 2>&1 &
	fi
	n=0
	until [ -s "$dir/pid" ] || [ $n = 50 ]; do
		sleep 0.1
		n=$((n + 1))
	done
	sleep 0.2
	running || { tail -n 3 "$dir/log"; fail "it ended at once"; }
	say running "$pid"
	say how $how
}

# Waits until no process is left: gone SECONDS
gone() {
	n=0
	while [ $n -le $(($1 * 5)) ]; do
		running || [ -n "$(marked)" ] || return 0
		sleep 0.2
		n=$((n + 1))
	done
	return 1
}

stop() { # stop SECONDS
	if running; then
		say stopped "$pid"
		kill -TERM "$pid" 2>/dev/null
	fi
	gone "$1" && return 0
	# Kills the recorded process, and processes that it has left.
	running && kill -KILL "$pid" 2>/dev/null
	for p in $(marked); do kill -KILL "$p" 2>/dev/null; done
	say killed
	gone 5
}

case $verb in
check)
	say arch "$(uname -m)"
	say system "$(uname -s)"
	say free "$(df -Pk "$HOME" | tail -n 1 | tr -s " " | cut -d " " -f 4)"
	find_program && say program "$program"
	[ ! -s "$root/$version/.stamp" ] || say stamp "$(cat "$root/$version/.stamp")"
	say bundle "$root/$version/bin/skippipe"
	if running; then
		say running "$pid"
		[ -z "$program" ] || say_gpus
	fi
	for file in "$1" "$1".[0-9]*; do [ ! -e "$file" ] || say key; done
	[ ! -e "$dir/log" ] || say log "$(wc -c <"$dir/log")"
	;;
install)
	# Hosts may share a home folder, so each unpacks in a folder of its own.
	part=$root/.part-$version-${id##*/}
	why=$({ mkdir -p "$root" && rm -rf "$part" && mkdir "$part"; } 2>&1) ||
		fail "$root cannot be written: $(echo "$why" | grep -m 1 .)"
	why=$(tar -xzf - -C "$part" 2>&1) || {
		rm -rf "$part"
		fail "the bundle cannot be unpacked${why:+: $(echo "$why" | grep -m 1 .)}"
	}
	new=$part/skippipe-$version
	# The loader may print warnings first, for example about a missing library in LD_PRELOAD.
	got=$("$new/bin/skippipe" --version 2>&1 | tail -n 1)
	case $got in *"Permission denied") got="$got; its file system may be mounted noexec" ;; esac
	[ "$got" = "skippipe $version" ] || { rm -rf "$part"; fail "the bundle does not run here: $got"; }
	echo "$1" >"$new/.stamp"
	# If another host has installed this bundle meanwhile, its agent may run from there already.
	if [ "$(cat "$root/$version/.stamp" 2>/dev/null)" != "$1" ] ||
		[ "$("$root/$version/bin/skippipe" --version 2>/dev/null | tail -n 1)" != "skippipe $version" ]; then
		[ ! -e "$root/$version" ] || mv "$root/$version" "$part/old"
		mv "$new" "$root/$version"
		# If another host was faster, mv has put this folder into the other host's folder.
		rm -rf "$root/$version/skippipe-$version"
	fi
	rm -rf "$part"
	# For a moment another host may have moved the folder away, to replace it.
	for try in 1 2 3 4 5; do
		[ "$(cat "$root/$version/.stamp" 2>/dev/null)" = "$1" ] && say installed && exit 0
		sleep 1
	done
	fail "$root/$version cannot be written"
	;;
start)
	if running; then
		say running "$pid"
		exit 0
	fi
	find_program || fail "skippipe $version is not here"
	mkdir -p "$dir" || fail "$dir cannot be written"
	cat >"$dir/token.part" && mv "$dir/token.part" "$dir/token" || fail "$dir/token cannot be written"
	folder=$1
	shift
	start "${folder:-$HOME}" "$@"
	;;
state)
	if running; then say running "$pid"; elif [ -s "$dir/pid" ]; then say ended; fi
	! find_program || say version "$version"
	[ -z "${1:-}" ] || [ ! -e "$1/run.db" ] || say record "$1"
	[ -e "$dir/log" ] || exit 0
	say joined "$(tail -c "+$((${2:-0} + 1))" "$dir/log" | sed -n "s/.*welcome: node \([0-9]*\) of .*/n\1/p" | sort -u |
		tr "\n" " ")"
	say last "$(tail -c 4000 "$dir/log" | tail -n 1)"
	;;
logs)
	[ -e "$dir/log" ] || exit 0
	tail -n "$1" "$dir/log" | tail -c 1000000 # a fleet command reads 1 MiB of output at most
	;;
follow)
	[ -e "$dir/log" ] || fail "there is no log"
	tail -n "$1" -F "$dir/log" 2>/dev/null &
	tail=$!
	cat >/dev/null
	kill "$tail"
	;;
forget)
	find_program || fail "skippipe $version is not here, so nothing was revoked"
	while [ "$1" != -- ]; do
		why=$("$program" invite --revoke "$1" 2>&1) || case $why in
		*"there is no invitation"*) ;; # the invitation is not listed any more
		*) fail "invitation $1 was not revoked: $why" ;;
		esac
		shift
	done
	shift
	list=${XDG_STATE_HOME:-$HOME/.local/state}/skippipe/admitted
	for name in "$@"; do
		pattern=$(echo "$name" | sed "s/[.]/[.]/g")
		for key in $(sed -n "s/^\([0-9a-f]*\) agent $pattern\(\.[0-9]*\)\{0,1\}\$/\1/p" "$list" 2>/dev/null); do
			"$program" expel "$list" "$key" || fail "the key of $name was not expelled"
		done
	done
	;;
doctor)
	find_program || exit 0
	say_gpus
	"$program" help doctor >/dev/null 2>&1 || exit 0 # this version has no such verb
	"$program" doctor --json "$@" 2>/dev/null || :
	;;
run)
	find_program || fail "skippipe $version is not here"
	"$program" "$@"
	;;
stop)
	stop "$1" || fail "a process does not end"
	rm -rf "$dir"
	rmdir "${dir%/*}" "$root/fleet" 2>/dev/null
	# Other fleets of this host may use the bundle.
	if [ "${2:-}" = purge ] && [ ! -d "$root/fleet" ]; then
		rm -rf "$root/$version" "$root/.part-$version-"*
	elif [ "${2:-}" = purge ]; then
		say kept
	fi
	rmdir "$root" 2>/dev/null
	left=$(marked)
	[ -z "$left" ] || fail "process $left runs"
	say gone
	;;
esac
exit 0
