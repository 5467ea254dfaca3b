#!/usr/bin/env bash
# Run by `./dev database`: `database.sh BIN [COMMAND …]` runs a command, or a shell, beside a PostgreSQL of its own, and removes
# that when the command has ended. BIN is the folder of PostgreSQL's programs. Only this user reaches it, by a socket.
set -euo pipefail
bin=$1
shift

folder=$(mktemp -d "${TMPDIR:-/tmp}/fence-database.XXXXXX")
as=()
if [ "$(id -u)" = 0 ]; then
  # PostgreSQL refuses to be root.
  user=postgres
  id "$user" >/dev/null 2>&1 || user=nobody
  chown "$user" "$folder"
  as=(setpriv "--reuid=$user" "--regid=$(id -g "$user")" --clear-groups --)
fi
server() { (cd "$folder" && "${as[@]}" "$bin/$1" "${@:2}"); }

finish() {
  if [ -e "$folder/data/postmaster.pid" ]; then
    server pg_ctl stop --pgdata="$folder/data" --mode=immediate --silent || true
  fi
  rm -rf "$folder"
}
trap finish EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

unset "${!PG@}"
server initdb --pgdata="$folder/data" --username=postgres --auth=trust --encoding=UTF8 --locale=C --no-sync >"$folder/initdb.log"
cat >>"$folder/data/postgresql.conf" <<CONF
listen_addresses = ''
unix_socket_directories = '$folder'
CONF
if ! server pg_ctl start --pgdata="$folder/data" --log="$folder/data/server.log" --silent >&2; then
  cat "$folder/data/server.log" >&2
  exit 4
fi

export PATH=$bin:$PATH PGHOST=$folder
psql --username=postgres --dbname=postgres --quiet --no-psqlrc --set=ON_ERROR_STOP=1 <<SQL
CREATE ROLE shop_owner LOGIN NOSUPERUSER CREATEROLE;
CREATE DATABASE shop OWNER shop_owner;
SQL
# No pager: what is pasted into psql would go to it.
export PGUSER=shop_owner PGDATABASE=shop PSQL_PAGER=cat
export DATABASE_URL="postgresql:///shop?host=$folder&user=shop_owner"
if [ $# = 0 ]; then
  echo "DATABASE_URL names a database of your own, whose owner you are: psql \"\$DATABASE_URL\". Leave this shell to remove it." >&2
  set -- "${SHELL:-bash}"
fi
"$@"
