# Hosts for end-to-end tests: network namespaces with veth pairs on a bridge; sourced after lib.sh, with hosts=(hub
# NAME...) set (hub is the bridge). Links can be cut in both directions or in one. Skips the script where there are no
# namespaces.
# shellcheck shell=bash disable=SC2154
[ "$(id -u)" = 0 ] || skip "network namespaces need root"
command -v ip >/dev/null || skip "there is no ip (Debian's iproute2)"

net=paramo$$
drop_hosts() { for host in "${hosts[@]}"; do ip netns del "$net-$host" 2>/dev/null; done; }
trap 'drop_hosts; clean_up' EXIT

on() { ip netns exec "$net-$1" "${@:2}"; } # HOST COMMAND...
start_on() { start "$1" ip netns exec "$net-$2" "${@:3}"; } # NAME HOST COMMAND...

address() { # HOST: hub has none
    local i
    for i in "${!hosts[@]}"; do [ "${hosts[i]}" = "$1" ] && echo "10.99.0.$i"; done
}

make_hosts() {
    local host
    for host in "${hosts[@]}"; do ip netns add "$net-$host" && on "$host" ip link set lo up || return 1; done
    on hub ip link add br0 type bridge && on hub ip link set br0 up || return 1
    for host in "${hosts[@]:1}"; do
        ip link add eth0 netns "$net-$host" type veth peer name "to-$host" netns "$net-hub" &&
            on hub ip link set "to-$host" master br0 up &&
            on "$host" ip addr add "$(address "$host")/24" dev eth0 &&
            on "$host" ip link set eth0 up || return 1
    done
}
make_hosts 2>"$ERR" || skip "no network namespaces here: $(tail -n 1 "$ERR")"

cut() { on hub ip link set "to-$1" down; }  # HOST: from everybody, in both directions
mend() { on hub ip link set "to-$1" up; }
cut_way() { on "$1" ip route add blackhole "$(address "$2")/32"; } # FROM TO: what FROM sends to TO is lost
mend_way() { on "$1" ip route del blackhole "$(address "$2")/32"; }

lines() { grep -c -- "$1" "$2" || true; }
more() { [ "$(lines "$1" "$2")" -gt "$3" ]; } # REGEX FILE LINES
