"""C identifiers for the names of a kernel.

Counters, registers, buffers and symbols live in separate name spaces, told apart by a prefix; a
prefixed name is never a keyword, a macro or a function of a header.
"""

import re

_KEYWORDS = """
auto break case char const continue default do double else enum extern float for goto if inline int
long register restrict return short signed sizeof static struct switch typedef union unsigned void
volatile while asm typeof linux unix i386 bool true false nullptr constexpr thread_local alignas
alignof static_assert main errno stdin stdout stderr offsetof assert signal environ
and and_eq bitand bitor catch class compl const_cast delete dynamic_cast explicit export friend
mutable namespace new not not_eq operator or or_eq private protected public reinterpret_cast
static_cast template this throw try typeid typename using virtual wchar_t xor xor_eq
"""

_FUNCTIONS = """
abort abs alloca atexit atof atoi atol atoll bcmp bcopy bsearch bzero calloc clearerr close div exit
fclose feof ferror fflush ffs ffsl ffsll fgetc fgets fopen fprintf fputc fputs fread free freopen
fscanf fseek ftell fwrite getc getchar getenv gets index labs ldiv llabs lldiv longjmp malloc
memccpy memchr memcmp memcpy memmem memmove mempcpy memset open perror printf putc putchar puts
qsort raise rand read realloc remove rename rewind rindex scanf select setbuf setjmp setvbuf sprintf
srand sscanf stpcpy stpncpy strcasecmp strcat strchr strcmp strcoll strcpy strcspn strdup strerror
strlen strncasecmp strncat strncmp strncpy strndup strpbrk strrchr strsep strspn strstr strtod
strtof strtok strtol strtold strtoll strtoul strtoull strxfrm system time tmpfile tmpnam toascii
tolower toupper ungetc vfprintf vprintf vscanf vsprintf write
isalnum isalpha isascii isblank iscntrl isdigit isgraph islower isprint ispunct isspace isupper
isxdigit isfinite isinf isnan isnormal isgreater isgreaterequal isless islessequal islessgreater
isunordered signbit fpclassify finite signgam
"""

# What stdlib.h, which intrinsics include, and unistd.h declare besides.
_POSIX = """
a64l access acct alarm aligned_alloc arc4random arc4random_buf arc4random_uniform at_quick_exit brk
chdir chown chroot clearenv clearerr_unlocked closefrom confstr crypt ctermid daemon dprintf drand48
drand48_r dup dup2 ecvt ecvt_r endusershell erand48 erand48_r execl execle execlp execv execve
execvp explicit_bzero faccessat fchdir fchown fchownat fcvt fcvt_r fdatasync fdopen feof_unlocked
ferror_unlocked fexecve fflush_unlocked fgetc_unlocked fgetpos fileno fileno_unlocked finitef
finitel flockfile fmemopen fork fpathconf fputc_unlocked fread_unlocked fseeko fsetpos fsync ftello
ftruncate ftrylockfile funlockfile fwrite_unlocked gcvt getc_unlocked getchar_unlocked getcwd
getdelim getdomainname getdtablesize getegid geteuid getgid getgroups gethostid gethostname getline
getloadavg getlogin getlogin_r getopt getpagesize getpass getpgid getpgrp getpid getppid getsid
getsubopt getuid getusershell getw getwd initstate initstate_r isatty isinff isinfl isnanf isnanl
jrand48 jrand48_r l64a lchown lcong48 lcong48_r lgamma_r lgammaf_r lgammal_r link linkat lockf
lrand48 lrand48_r lseek mblen mbstowcs mbtowc mkdtemp mkstemp mkstemps mktemp mrand48 mrand48_r nice
nrand48 nrand48_r on_exit open_memstream pathconf pause pclose pipe popen posix_memalign pread
profil pselect putc_unlocked putchar_unlocked putenv putw pwrite qecvt qecvt_r qfcvt qfcvt_r qgcvt
quick_exit rand_r random random_r readlink readlinkat reallocarray realpath renameat revoke rmdir
rpmatch sbrk seed48 seed48_r setbuffer setdomainname setegid setenv seteuid setgid sethostid
sethostname setlinebuf setlogin setpgid setpgrp setregid setreuid setsid setstate setstate_r setuid
setusershell sleep snprintf srand48 srand48_r srandom srandom_r strcasecmp_l strcoll_l strerror_l
strerror_r strncasecmp_l strnlen strsignal strtok_r strtoq strtouq strxfrm_l symlink symlinkat sync
syscall sysconf tcgetpgrp tcsetpgrp tempnam tmpnam_r truncate ttyname ttyname_r ttyslot ualarm
unlink unlinkat unsetenv usleep valloc vdprintf vfork vfscanf vhangup vsnprintf vsscanf wcstombs
wctomb
"""

_MATH = """
acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh drem erf erfc exp exp10 exp2
expm1 fabs fdim floor fma fmax fmin fmod frexp gamma hypot ilogb j0 j1 jn ldexp lgamma llrint
llround log log10 log1p log2 logb lrint lround modf nan nearbyint nextafter nexttoward pow pow10
remainder remquo rint round roundeven scalb scalbln scalbn significand sin sincos sinh sqrt tan tanh
tgamma trunc y0 y1 yn
cabs cacos cacosh carg casin casinh catan catanh ccos ccosh cexp cimag clog conj cpow cproj creal
csin csinh csqrt ctan ctanh
"""

RESERVED = frozenset(
    [*_KEYWORDS.split(), *_FUNCTIONS.split(), *_POSIX.split()]
    + [name + suffix for name in _MATH.split() for suffix in ("", "f", "l")]
)
"""Words that a C file with the usual headers gives another meaning."""

_MACRO = re.compile(
    r"""_.* | .*_t | (isamap|pthread|sched)_.* | sig\w+ | (PTHREAD|SCHED|CLONE|SIG)_?\w+ | NULL |
    EOF | BUFSIZ | NAN | INFINITY | HUGE_\w+ |
    RAND_MAX | (U?INT|SIZE|PTRDIFF|WCHAR|WINT)(\d|_|MAX|PTR)\w* | (M|FP|SEEK|EXIT|L|P|MATH)_\w+ | I
    | MB_\w+ | DOMAIN | SING | OVERFLOW | UNDERFLOW | FILENAME_MAX | FOPEN_MAX | TMP_MAX |
    ISAMAP_\w+""",
    re.VERBOSE,
)

# Called or defined as a function or a macro, a type, a variable with a value.
_DECLARED = r"\bNAME\s*\(|#\s*define\s+NAME\b|\btypedef\b[^;]*\bNAME\b|\bNAME\s*(\[\w*\]\s*)*="


def mangle(name: str) -> str:
    """Return ``name`` with what no C identifier may hold written as hexadecimal."""
    return re.sub(r"[^A-Za-z0-9_]", lambda found: f"_x{ord(found[0]):x}_", name)


def counter(name: str) -> str:
    """Return the C variable of a loop counter."""
    return f"i_{mangle(name)}"


def register(name: str) -> str:
    """Return the C variable of a register."""
    return f"r_{mangle(name)}"


def channel(name: str) -> str:
    """Return the C variable of a channel of tokens."""
    return f"t_{mangle(name)}"


def buffer(name: str) -> str:
    """Return the C pointer to a buffer."""
    return f"p_{mangle(name)}"


def symbol(name: str) -> str:
    """Return the C parameter of a symbolic extent."""
    return f"n_{mangle(name)}"


def entry_point(name: str, other_text: str) -> str:
    """Return the C function of a kernel: its own name unless that means something else in C or in
    ``other_text`` (a prelude, templates)."""
    wanted = mangle(name)
    taken = (
        wanted in RESERVED
        or _MACRO.fullmatch(wanted) is not None
        or re.search(_DECLARED.replace("NAME", wanted), other_text) is not None
    )
    return f"kernel_{wanted}" if taken else wanted


def comment(text: str) -> str:
    """Return ``text`` fit for one line of a C comment."""
    plain = "".join(c if c.isprintable() else "?" for c in text)
    # No end of a comment, no start of one, no trigraph and no spliced line.
    return plain.replace("*/", "* /").replace("/*", "/ *").replace("??", "? ?").rstrip("\\")
