# What another machine's shell does for a Proofload elsewhere: tells what is here, takes a program in, starts it.
#
# It comes over stdin, after assignments of mark, name and sum (talk.rs). Then orders come there, a line each, and what it says goes to
# stdout with $mark before each line, so that it is told apart from what a shell's start files print. Nothing here may read stdin but for
# an order: what follows the last one is the program's. POSIX sh and the commands of a small system such as busybox have to be enough.

case ${XDG_CACHE_HOME:-} in
    /*) folder=$XDG_CACHE_HOME/proofload/bin ;;
    *) folder=${HOME:-}/.cache/proofload/bin ;;
esac
file=$folder/$name
part=$folder/.$name.$mark

say() { printf '%s %s\n' "$mark" "$*"; }

# Lines of stdin as facts of one name.
tell() { while IFS= read -r line; do say "$1 $line"; done; }

# A command whose words are those that talk.rs knows, whatever language is spoken here.
plainly() { LC_ALL=C "$@"; }

has() { command -v "$1" >/dev/null 2>&1; }

# SHA-256 of a file in hexadecimal; where no command has it, the program tells that of its own.
sum_of() {
    if has sha256sum; then found=$(sha256sum <"$1")
    elif has shasum; then found=$(shasum -a 256 <"$1")
    elif has openssl; then found=$(openssl dgst -sha256 -r <"$1")
    else found=$("$1" __sha256 </dev/null)
    fi 2>/dev/null
    printf '%s' "${found%% *}"
}

# What the file system has room for on which the program is, or will be.
room() {
    at=$folder
    until [ -d "$at" ]; do
        at=${at%/*}
        : "${at:=/}"
    done
    plainly df -Pk "$at" 2>/dev/null | tell room
}

look() {
    say "system $(uname -s)"
    say "machine $(uname -m)"
    say "user $(id -un)"
    say "folder $folder"
    room
    # A damaged one is copied anew.
    if [ -e "$file" ] && [ "$(sum_of "$file")" = "$sum" ]; then
        say "program there"
    fi
    say "done look"
}

# It ends here: what else is on its way over stdin is part of the program.
fail() {
    rm -f "$part"
    printf '%s\n' "$words" | tell words
    room
    say "failed $1"
    exit 1
}

put() {
    words=$( { (umask 077 && plainly mkdir -p "$folder") && (: >"$part"); } 2>&1) || fail folder
    say "done folder"
    words=$( { plainly head -c "$1" >"$part" && chmod 700 "$part"; } 2>&1) || fail write
    # Nobody is there any more who would hear of it.
    [ "$(wc -c <"$part")" -eq "$1" ] || fail length
    [ "$(sum_of "$part")" = "$sum" ] || fail sum
    words=$(plainly mv -f "$part" "$file" 2>&1) || fail write
    say "done put"
}

attempt() {
    words=$(plainly "$file" --version 2>&1 </dev/null)
    status=$?
    printf '%s\n' "$words" | tell words
    say "done attempt $status"
}

look
while IFS= read -r order; do
    case $order in
        put\ *) put "${order#put }" ;;
        attempt) attempt ;;
        run\ *)
            eval "set -- ${order#run }"
            exec "$file" "$@"
            ;;
    esac
done
