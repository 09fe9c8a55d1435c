# Runs a static program for Linux on x86-64 in Bochs: sh run.sh TREE MODEL PROGRAM <input >output
#
# TREE is the folder with Bochs, its libraries and rom.bin, which is what the machine begins with in
# place of a BIOS.  MODEL is one of 'bochs --help cpu'.  The machine has a disk without a name:
#
#     sector 0     before: "<bytes of the program> <bytes of the input>"
#                  after: "<first sector of the output> <bytes of it> <bytes of what was written to the
#                  standard error output, behind it> <status> <signal that ended it, or 0>"
#     sector 1...  the program; then, each from a sector of its own, the input and the output
tree=$1
libraries=$(echo "$tree"/usr/lib/*-linux-gnu)
export LTDL_LIBRARY_PATH="$libraries/bochs/plugins" TERM=linux

bochs() {
    "$libraries"/ld-linux-x86-64.so.2 --library-path "$libraries" "$tree/usr/bin/bochs-bin" "$@"
}
fail() {
    echo "bochs-x86_64: $1" >&2
    exit 125
}

if [ "$2" = --version ]; then
    bochs --help 2>&1 | sed -n 's/.*Bochs x86 Emulator \([0-9.]*\).*/bochs-x86_64 \1/p'
    exit
fi
[ -f "$3" ] || fail "no program '$3'"

# Files have no names once they are open: however this ends, nothing is left.
work=$(mktemp -d) || fail "no place for files"
trap 'rm -rf "$work"' EXIT
cat >"$work/input"
bytes=$(wc -c <"$3") input=$(wc -c <"$work/input")
{
    printf '%-511s\n' "$((bytes)) $((input))"
    cat "$3"
} >"$work/disk"
truncate -s %512 "$work/disk"
cat "$work/input" >>"$work/disk"
# Room for the output, and whole cylinders of 16 * 63 sectors; it takes no place until it is written.
truncate -s +512M "$work/disk"
truncate -s %516096 "$work/disk"
exec 3<>"$work/disk"
rm -rf "$work"

told=$(bochs -q -f /dev/null \
    "cpu: model=$2, ips=50000000, reset_on_triple_fault=0" "clock: sync=none" \
    "memory: guest=1024, host=1024" "romimage: file=$tree/rom.bin, address=0xffff0000" \
    "vgaromimage: file=$tree/usr/share/vgabios/vgabios.bin" "display_library: term" \
    "sound: waveoutdrv=dummy, waveindrv=dummy, midioutdrv=dummy" "speaker: enabled=0" \
    "ata0-master: type=disk, path=/dev/fd/3, mode=flat, cylinders=0, heads=16, spt=63" \
    "panic: action=fatal" "log: /dev/null" 2>&1 </dev/null)

take() { # bytes $1, from byte $2 on
    dd bs=65536 iflag=fullblock,skip_bytes,count_bytes skip="$2" count="$1" status=none </dev/fd/3
}
set -- $(take 512 0)
[ $# = 5 ] || fail "the machine stopped before the program did: $told"
take "$2" "$(($1 * 512))"
take "$3" "$(($1 * 512 + $2))" >&2
[ "$5" = 0 ] || { ulimit -c 0 && kill -s "$5" $$; }
exit "$4"
