// This architecture has only the system calls of the common list.

package python

const auditArch = 0xc00000b7 // linux/audit.h

var (
	legacy        []uint32
	legacyChecked map[uint32][]check
)
