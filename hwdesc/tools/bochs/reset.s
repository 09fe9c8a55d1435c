# From the reset of an x86-64 processor to C: real mode, protected mode, long mode.
#
# The image is a ROM of 64 KiB that ends where 4 GiB end.  It is copied to 1 MiB, where it was linked to.

# --- what is in the ROM only ---------------------------------------------------------------------
.section .reset, "ax"
.code16
begin:
    cli
    lgdtl %cs:(first_table_pointer - 0xffff0000)
    movl %cr0, %eax
    orb $1, %al
    movl %eax, %cr0
    ljmpl $0x08, $protected

.code32
protected:
    movw $0x10, %ax
    movw %ax, %ds
    movw %ax, %es
    movw %ax, %ss
    movb $2, %al                # addresses have a bit 20
    outb %al, $0x92
    cld
    movl $0xffff0000, %esi
    movl $0x100000, %edi
    movl $0x4000, %ecx
    rep movsl
    movl $in_memory, %eax
    jmp *%eax

.balign 8
first_table:
    .quad 0, 0x00cf9b000000ffff, 0x00cf93000000ffff
first_table_pointer:
    .word first_table_pointer - first_table - 1
    .long first_table

.section .vector, "ax"
.code16
    jmp begin

# --- what runs from memory -----------------------------------------------------------------------
.text
.code32
in_memory:
    lgdtl segments_pointer
    xorl %eax, %eax             # what has no content in the ROM, and all page tables, are zero
    movl $bss_begin, %edi
    movl $0x400000, %ecx
    subl %edi, %ecx
    shrl $2, %ecx
    rep stosl

    # The first 4 MiB are two pages of the supervisor; a table of small pages for each 2 MiB more.
    movl $page_pointers + 7, page_root
    movl $page_directory + 7, page_pointers
    movl $0x000083, page_directory
    movl $0x200083, page_directory + 8
    movl $2, %ecx
1:  movl %ecx, %eax
    shll $12, %eax
    addl $0x200007, %eax
    movl %eax, page_directory(, %ecx, 8)
    incl %ecx
    cmpl $512, %ecx
    jne 1b

    movl $1, %eax               # without XSAVE the bit would fault
    cpuid
    andl $0x4000000, %ecx
    shrl $8, %ecx
    orl $0x620, %ecx            # large page tables, SSE and its exceptions
    movl %ecx, %cr4
    movl $page_root, %eax
    movl %eax, %cr3
    movl $0xc0000080, %ecx      # long mode, 'syscall'
    movl $0x101, %eax
    xorl %edx, %edx
    wrmsr
    movl $0x80010033, %eax      # pages, read-only ones for everybody
    movl %eax, %cr0
    ljmpl $0x18, $long_mode

.code64
long_mode:
    movl $supervisor_stack, %esp
    movl $0x20, %eax
    movl %eax, %ds
    movl %eax, %es
    movl %eax, %ss
    movl $state_segment, %eax   # the stack of the supervisor when the program faults
    movw $103, segments + 0x40
    movw %ax, segments + 0x40 + 2
    shrl $16, %eax
    movb %al, segments + 0x40 + 4
    movb $0x89, segments + 0x40 + 5
    movb %ah, segments + 0x40 + 7
    movq $supervisor_stack, state_segment + 4
    movl $0x40, %eax
    ltr %ax
    jmp supervise

# Enter the program: its first instruction, its stack.
.globl enter_program
enter_program:
    movq %rdi, %rcx
    movq %rsi, %rsp
    movl $0x202, %r11d
    xorl %eax, %eax
    xorl %ebx, %ebx
    xorl %edx, %edx
    xorl %esi, %esi
    xorl %edi, %edi
    xorl %ebp, %ebp
    xorl %r8d, %r8d
    xorl %r9d, %r9d
    xorl %r10d, %r10d
    xorl %r12d, %r12d
    xorl %r13d, %r13d
    xorl %r14d, %r14d
    xorl %r15d, %r15d
    sysretq

# A call of the program: number in rax; rdi, rsi, rdx, r10, r8, r9; the result in rax, all else kept.
.globl called
called:
    movq %rsp, program_stack
    movl $supervisor_stack, %esp
    pushq %rcx
    pushq %r11
    pushq %r9
    pushq %r8
    pushq %r10
    pushq %rdx
    pushq %rsi
    pushq %rdi
    pushq %rax
    movq %rsp, %rdi
    call answer
    addq $8, %rsp
    popq %rdi
    popq %rsi
    popq %rdx
    popq %r10
    popq %r8
    popq %r9
    popq %r11
    popq %rcx
    movq program_stack, %rsp
    sysretq

# A fault of the program, or of the supervisor: its number, and where.
.macro fault number, has_code
fault_\number:
    .if \has_code
    addq $8, %rsp
    .endif
    movl $\number, %edi
    movq (%rsp), %rsi
    movl $supervisor_stack, %esp
    call faulted
.endm
.irp number, 0, 1, 2, 3, 4, 5, 6, 7, 9, 15, 16, 18, 19, 20
    fault \number, 0
.endr
.irp number, 8, 10, 11, 12, 13, 14, 17, 21
    fault \number, 1
.endr
.data
.globl fault_entries
.balign 8
fault_entries:
.irp number, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21
    .quad fault_\number
.endr

# Selectors 8 and 0x10 are those of the way here, 0x18 and 0x20 the supervisor's, 0x30 and 0x38 the
# program's (data and code, as 'sysret' wants them), 0x40 the task's.
.balign 8
segments:
    .quad 0, 0x00cf9b000000ffff, 0x00cf93000000ffff, 0x00af9b000000ffff, 0x00cf93000000ffff
    .quad 0, 0x00cff3000000ffff, 0x00affb000000ffff, 0, 0
segments_pointer:
    .word segments_pointer - segments - 1
    .long segments

.bss
.balign 4096
page_root:
    .skip 4096
page_pointers:
    .skip 4096
page_directory:
    .skip 4096
    .skip 16384
supervisor_stack:
state_segment:
    .skip 104
program_stack:
    .skip 8
