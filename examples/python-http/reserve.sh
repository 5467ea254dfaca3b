#!/bin/sh
# Reserves stock of an item once for an order, under the item's lock in etcd.
# usage: reserve.sh ETCD PREFIX TTL STOCK ITEM ORDER QUANTITY [WRITES]
set -eu
etcd=$1 prefix=$2 ttl=${3%s} stock=$4 item=$5 order=$6 quantity=$7 writes=${8:-1}
class=stock.item
case $item in *[!A-Za-z0-9._:~-]*) echo "reserve.sh: in a lock's name nothing is escaped here: $item" >&2; exit 2 ;; esac

# --- etcd's JSON gateway: keys and values in base64, numbers as strings -------------------------------------------
ask() { curl -fsS --max-time 10 "$etcd/v3/$1" -d "$2"; }
b64() { printf %s "$1" | base64 -w 0; }
string() { sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p"; }

# One point at which a test can keep this process; nothing without FENCE_GATES.
gate() {
  [ -z "${FENCE_GATES:-}" ] || [ "$(echo "$1" | curl -sN --unix-socket "$FENCE_GATES" telnet://gate | wc -c)" -eq 1 ]
}

# --- the lock ------------------------------------------------------------------------------------------------------
epoch_key=$prefix/epoch
lock=$prefix/lock/$class/$item
grant=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
lease=$(ask lease/grant "{\"TTL\":\"$ttl\"}" | string ID)
session=$(printf %016x "$lease")
record="{\"class\":\"$class\",\"key\":\"$item\",\"grant_id\":\"$grant\",\"session\":\"$session\"}"

# Renewed three times in its life, for as long as this process lives.
while kill -0 $$ && sleep "$(awk "BEGIN { print $ttl / 3 }")"; do
  ask lease/keepalive "{\"ID\":\"$lease\"}" | grep -q '"TTL"' || exit
done 2>/dev/null &
keeper=$!
trap 'kill $keeper 2>/dev/null; ask lease/revoke "{\"ID\":\"$lease\"}" >/dev/null' EXIT

absent() { echo "{\"target\":\"CREATE\",\"result\":\"EQUAL\",\"create_revision\":\"0\",\"key\":\"$(b64 "$1")\"${2:+,\"range_end\":\"$(b64 "$2")\"}}"; }
while :; do
  read=$(ask kv/range "{\"key\":\"$(b64 "$epoch_key")\"}")
  epoch_record=$(echo "$read" | string value | base64 -d)
  moved=$(echo "$read" | string mod_revision)
  cluster=$(echo "$read" | string cluster_id)
  case $epoch_record in *"\"cluster_id\":\"$(printf %016x "$cluster")\""*) ;; *) echo "reserve.sh: the store is sealed" >&2; exit 4 ;; esac
  epoch=$(echo "$epoch_record" | sed -n 's/.*"epoch":\([0-9]*\).*/\1/p')
  same_epoch="{\"target\":\"MOD\",\"result\":\"EQUAL\",\"mod_revision\":\"$moved\",\"key\":\"$(b64 "$epoch_key")\"}"
  put="{\"request_put\":{\"key\":\"$(b64 "$lock/held")\",\"value\":\"$(b64 "$record")\",\"lease\":\"$lease\"}}"
  compare="$(absent "$lock/held"),$(absent "$lock/queue/" "$lock/queue0"),$same_epoch,$(absent "$lock/cancel/$grant")"
  answer=$(ask kv/txn "{\"compare\":[$compare],\"success\":[$put]}")
  case $answer in *'"succeeded":true'*) break ;; esac
  sleep 0.1
done
revision=$(echo "$answer" | sed -n 's/^{"header":{[^}]*"revision":"\([0-9]*\)".*/\1/p')
token=$((epoch * 281474976710656 + revision))
claim="Fencing-Token: \"$token\";grant=\"$grant\""

# --- the work: fence, then read, then write --------------------------------------------------------------------------
gate after-grant
curl -fsS -X POST -H "$claim" "http://$stock/items/$item/fence"
reserved=$(curl -fsS "http://$stock/items/$item/reservations")
gate after-read
case $reserved in *"\"$order\""*) echo "$order: reserved before"; exit ;; esac
for n in $(seq "$writes"); do
  kill -0 $keeper # the last look at the lease; what happens after it is what the fence is for
  gate before-send
  curl -sS -w ' %{http_code}\n' -H "$claim" -H "Idempotency-Key: $grant:$n" -H 'Content-Type: application/json' \
    -d "{\"order\":\"$order\",\"quantity\":$quantity}" "http://$stock/items/$item/reservations"
done
