#!/usr/bin/env bash
# Run as root by ./dev: installs Debian packages and leaves no service running or enabled that was not so before.
set -eu
export DEBIAN_FRONTEND=noninteractive

# What would start at the next boot: links of systemd and of the init scripts.
enabled() {
  { find /etc/systemd/system -type l 2>/dev/null
    find /etc/rc?.d -name 'S*' 2>/dev/null; } | sort
}

before=$(mktemp)
after=$(mktemp)
policy=/usr/sbin/policy-rc.d
cluster=/etc/postgresql-common/createcluster.conf
ours=
made_cluster=
undo() {
  rm -f "$before" "$after"
  [ -z "$ours" ] || rm -f "$policy"
  [ -z "$made_cluster" ] || cp /usr/share/postgresql-common/createcluster.conf "$cluster" 2>/dev/null || rm -f "$cluster"
}
trap undo EXIT
enabled >"$before"

# Nothing is started by the installation …
if [ ! -e "$policy" ]; then
  ours=1
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod 755 "$policy"
fi
# … and PostgreSQL makes no cluster of its own where it was not installed before.
if [ ! -e "$cluster" ] && [ ! -d /etc/postgresql-common ]; then
  mkdir -p /etc/postgresql-common
  echo 'create_main_cluster = false' >"$cluster"
  made_cluster=1
fi

apt-get update -q
apt-get install -q -y --no-install-recommends -o Dpkg::Options::=--force-confold "$@"

enabled >"$after"
comm -13 "$before" "$after" | while read -r link; do
  case $link in
    /etc/rc?.d/*)
      name=${link##*/S??}
      update-rc.d "$name" disable
      ;;
    *)
      unit=${link##*/}
      # It speaks only to a package's own script; the link is removed in any case.
      DPKG_MAINTSCRIPT_PACKAGE=fence deb-systemd-helper disable "$unit" || true
      rm -f "$link"
      ;;
  esac
done
