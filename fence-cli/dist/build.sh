#!/usr/bin/env bash
# Run by `./dev dist`: one static `fence`, the SQL that it belongs to and the licences of what is in it, in one archive under
# target/dist/. The same commit, toolchain and C library give the same bytes: times come from the commit, or from
# SOURCE_DATE_EPOCH; names are sorted; no path of this machine is built in.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

machine=$(uname -m)
version=$(sed -n '/^\[workspace\.package\]/,/^$/s/^version = "\(.*\)"$/\1/p' Cargo.toml)
name=fence-$version-$machine-linux
out=target/dist/$name
cargo_home=${CARGO_HOME:-$HOME/.cargo}
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export LC_ALL=C

# musl where its standard library is installed, and otherwise glibc, linked in whole.
target=$machine-unknown-linux-musl
[ -d "$(rustc --print target-libdir --target "$target")" ] || target=$machine-unknown-linux-gnu

separator=$'\x1f'
CARGO_ENCODED_RUSTFLAGS=$(printf %s "-Ctarget-feature=+crt-static" \
  "$separator--remap-path-prefix=$PWD=." "$separator--remap-path-prefix=$cargo_home=cargo") \
  CARGO_PROFILE_RELEASE_DEBUG=false CARGO_PROFILE_RELEASE_STRIP=symbols \
  cargo build --locked --release --package fence-cli --target "$target" --target-dir target/dist-build

# What cargo links in: `NAME VERSION`, a tab, its licence.
linked() {
  cargo tree --locked --package fence-cli --edges normal --target "$target" --prefix none --format $'{p}\t{l}' |
    grep -v ' (/' | sed -e 's/ ([*])$//' -e 's/ (proc-macro)//' -e 's/ v\([^ \t]*\)/ \1/' | sort -u
}

# The texts that come with each package, one path a line.
texts() {
  local package=$1 dir
  for dir in "$cargo_home"/registry/src/*/"${package/ /-}"; do
    [ -d "$dir" ] || continue
    find "$dir" -maxdepth 1 -type f \
      \( -iname 'LICEN[SC]E*' -o -iname 'COPYING*' -o -iname 'COPYRIGHT*' -o -iname 'NOTICE*' -o -iname 'UNLICENSE*' \) | sort
    return
  done
}

third_party() {
  local package licence text sum last=
  echo "What is linked into fence besides its own code, by name, version and licence. The texts follow, each once, below the"
  echo "names of the packages that carry it; a package without one is under the licence named here, in its usual words."
  echo
  linked | while IFS=$'\t' read -r package licence; do
    printf '%-34s %s\n' "$package" "$licence"
  done
  printf '%-34s %s\n' "Rust standard library" "MIT OR Apache-2.0"
  case $target in
    *-musl) printf '%-34s %s\n' "musl" "MIT" ;;
    *)
      printf '%-34s %s\n' "GNU C Library" "LGPL-2.1-or-later"
      echo
      echo "To link fence with another version of the GNU C Library, build it from its source with \`./dev dist\`."
      ;;
  esac
  linked | while IFS=$'\t' read -r package licence; do
    texts "$package" | while read -r text; do
      printf '%s\t%s\t%s\n' "$(sha256sum <"$text" | cut -d ' ' -f 1)" "$package" "$text"
    done
  done | sort >"$lists"
  cut -f 1 "$lists" | uniq | while read -r sum; do
    printf '\n%s\n' "================================================================================================"
    grep "^$sum" "$lists" | cut -f 2 | sort -u
    printf '%s\n\n' "------------------------------------------------------------------------------------------------"
    last=$(grep -m 1 "^$sum" "$lists" | cut -f 3)
    cat "$last"
  done
  if [ "${target##*-}" = gnu ] && [ -r /usr/share/common-licenses/LGPL-2.1 ]; then
    printf '\n%s\nGNU C Library\n%s\n\n' \
      "================================================================================================" \
      "------------------------------------------------------------------------------------------------"
    cat /usr/share/common-licenses/LGPL-2.1
  fi
}

lists=$(mktemp)
trap 'rm -f "$lists"' EXIT

rm -rf "$out" "$out.tar.gz"
mkdir -p "$out/sql" "$out/defeat" "$out/docs"
cp "target/dist-build/$target/release/fence" "$out/fence"
cp fence-pg/sql/*.sql "$out/sql/"
cp reference-resource/defeat/admit_everything.sql "$out/defeat/"
cp fence-cli/dist/README.md LICENSE-MIT LICENSE-APACHE "$out/"
cp docs/*.md "$out/docs/"
third_party >"$out/THIRD-PARTY.txt"
find "$out" -type d -exec chmod 755 {} +
find "$out" -type f -exec chmod 644 {} +
chmod 755 "$out/fence"
(cd "$out" && find . -type f ! -name SHA256SUMS | sort | sed 's|^\./||' | xargs sha256sum >SHA256SUMS && chmod 644 SHA256SUMS)

tar --create --sort=name --format=ustar --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
  --directory target/dist "$name" | gzip --no-name --best >"$out.tar.gz"
(cd target/dist && sha256sum "$name.tar.gz" >SHA256SUMS)
echo "$out.tar.gz"
