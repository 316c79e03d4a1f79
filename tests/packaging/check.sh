#!/bin/sh
# Installs the build into an empty folder, looks at what is there, and builds outside programs against it: with CMake
# (shared and static), with pkg-config, and as C++.
# Usage: check.sh CMAKE SOURCE BUILD C_COMPILER VERSION
set -eu

cmake=$1 source=$2 build=$3 compiler=$4 version=$5
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/prefix
unset DESTDIR || true # an installer's wish for the real installation, not for this one

passed=0
say() { echo "packaging: $*"; }
fail() {
    say "FAILED: $*"
    echo "$passed passed, 1 failed"
    exit 1
}
pass() {
    passed=$((passed + 1))
    say "$*"
}

# ---------------------------------------------------------------- what is installed

"$cmake" --install "$build" --prefix "$prefix" >"$work/log" 2>&1 || { cat "$work/log"; fail "cmake --install"; }
cmp -s "$source/include/onepass.h" "$prefix/include/onepass.h" || fail "include/onepass.h is not the header"
library=$(find "$prefix" -name "libonepass.so.$version")
[ -n "$library" ] || fail "no libonepass.so.$version in $(cd "$prefix" && find . -type f | tr '\n' ' ')"
libraries=$(dirname "$library")
soname=libonepass.so.${version%%.*}
for file in libonepass.a libonepass.so "$soname" pkgconfig/onepass.pc cmake/onepass/onepass-config.cmake; do
    [ -e "$libraries/$file" ] || fail "no $file beside $library"
done
pass "header, libraries, CMake package and pkg-config file are there"

# A build for another architecture may go without the tool.
if [ -e "$build/cli/onepass" ]; then
    [ "$("$prefix/bin/onepass" --version)" = "onepass $version" ] || fail "bin/onepass does not say its version"
    for file in man/man1/onepass.1 bash-completion/completions/onepass; do
        [ -s "$prefix/share/$file" ] || fail "no share/$file"
    done
    pass "the tool, its man page and its completion are there"
fi

if command -v readelf >/dev/null; then
    readelf -d "$library" | grep -q "SONAME.*\[$soname\]" || fail "the soname is not $soname"
    pass "the soname is $soname"
else
    say "left out: the soname, since there is no readelf"
fi

# Functions of the header, whose prototypes begin with ONEPASS_API: exported all, and nothing else.
if command -v nm >/dev/null; then
    sed -n 's/^ONEPASS_API .*\(onepass_[a-z0-9_]*\)(.*/\1/p' "$source/include/onepass.h" | sort >"$work/promised"
    nm -D --defined-only "$library" | awk '{ sub(/@.*/, "", $3); print $3 }' | grep -v '^_init$\|^_fini$' | sort >"$work/exported"
    diff "$work/promised" "$work/exported" >"$work/log" || { cat "$work/log"; fail "the header and the exported symbols differ"; }
    pass "exactly the $(wc -l <"$work/promised") functions of the header are exported"
    strange=$(nm -g --defined-only "$libraries/libonepass.a" | awk 'NF == 3 && $3 !~ /^onepass_/ { print $3 }' | grep -v '__odr_asan\|^__asan' || true)
    [ -z "$strange" ] || fail "the static library also defines $strange"
    pass "the static library defines nothing but onepass_*"
else
    say "left out: the exported symbols, since there is no nm"
fi

# ---------------------------------------------------------------- outside programs

run() {
    output=$("$@") || fail "$* ended with an error: $output"
    [ "$output" = "onepass $version" ] || fail "$* printed \"$output\""
}

"$cmake" -S "$here" -B "$work/outside" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_COMPILER="$compiler" \
    -DWANTED_VERSION="${version%.*}" >"$work/log" 2>&1 && "$cmake" --build "$work/outside" >>"$work/log" 2>&1 ||
    { cat "$work/log"; fail "an outside CMake project"; }
run "$work/outside/outside_shared"
run "$work/outside/outside_static"
pass "find_package(onepass): onepass::onepass and onepass::static"

if command -v pkg-config >/dev/null; then
    export PKG_CONFIG_PATH="$libraries/pkgconfig"
    [ "$(pkg-config --modversion onepass)" = "$version" ] || fail "pkg-config does not know version $version"
    # shellcheck disable=SC2046 # flags are words
    "$compiler" -std=c99 -Wall -Wextra -Werror "$here/outside.c" -o "$work/by_pkg_config" \
        $(pkg-config --cflags --libs onepass) -Wl,-rpath,"$libraries" || fail "a program by pkg-config"
    run "$work/by_pkg_config"
    # The static library by its name; the rest of --static is what it needs itself.
    # shellcheck disable=SC2046
    "$compiler" -std=c99 "$here/outside.c" -o "$work/by_pkg_config_static" $(pkg-config --cflags onepass) \
        $(pkg-config --libs --static onepass | sed "s|-lonepass|$libraries/libonepass.a|") ||
        fail "a static program by pkg-config"
    run "$work/by_pkg_config_static"
    pass "pkg-config: shared and static"
else
    say "left out: pkg-config, which is not there"
fi

cxx=
for candidate in "${CXX:-}" c++ g++ clang++; do
    if [ -n "$candidate" ] && command -v "$candidate" >/dev/null; then
        cxx=$candidate
        break
    fi
done
if [ -n "$cxx" ]; then
    for standard in c++98 c++17; do
        "$cxx" -x c++ -std=$standard -pedantic -Wall -Wextra -Werror -I"$prefix/include" "$here/outside.c" \
            -o "$work/$standard" -L"$libraries" -lonepass -Wl,-rpath,"$libraries" || fail "a $standard program"
        run "$work/$standard"
    done
    pass "$cxx: the header as C++98 and C++17"
else
    say "left out: C++, since there is no C++ compiler"
fi
echo "$passed passed, 0 failed"
