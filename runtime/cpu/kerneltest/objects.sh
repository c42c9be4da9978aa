#!/usr/bin/env bash
# objects.sh FLAGS... -- SOURCES...: compiles C++ of the engine and of tests on every core and prints the objects' paths.
# They are kept in the user's cache under the hash of all that goes into them, so each is compiled once for all tests
# that link it. CXX chooses the compiler (g++ by default); HEADERS are those that the sources include, by default the CPU
# kernels' and their tests'.
set -euo pipefail
cxx=${CXX:-g++}
flags=()
while [ "$1" != -- ]; do
  flags+=("$1")
  shift
done
shift
here=$(dirname "$0")
cache=${XDG_CACHE_HOME:-$HOME/.cache}/ossrun-kernels
mkdir -p "$cache"
find "$cache" -mindepth 1 -mtime +14 -delete 2> /dev/null || true
# shellcheck disable=SC2086 # several words
common=$({ echo "${flags[@]}"; $cxx --version; cat -- ${HEADERS:-"$here"/*.h "$here"/../*.h}; } | sha256sum)
exec 9> "$cache/lock-objects-$(cksum <<< "${HEADERS:-}" | cut -d ' ' -f 1)" # a second call finds what the first one makes
flock 9
objects=() stale=()
for source in "$@"; do
  object=$cache/$(basename "$source" .cpp)-$({ echo "$common"; cat -- "$source"; } | sha256sum | cut -c1-16).o
  objects+=("$object")
  [ -f "$object" ] || stale+=("$source" "$object")
done
# Into a name of its own first: a build that is killed leaves no half of an object.
[ ${#stale[@]} = 0 ] || printf '%s\0' "${stale[@]}" | xargs -0 -P "$(nproc)" -n 2 sh -c \
  "$cxx ${flags[*]} -c -o \"\$1.\$\$\" \"\$0\" && mv \"\$1.\$\$\" \"\$1\""
touch "${objects[@]}"
printf '%s\n' "${objects[@]}"
