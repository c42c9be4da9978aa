// This architecture has no system calls but those of all.

package python

const auditArch = 0xc00000b7 // linux/audit.h

var (
	legacy        []uint32
	legacyChecked map[uint32][]check
)
