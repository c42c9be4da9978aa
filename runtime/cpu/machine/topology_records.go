package machine

import "encoding/binary"

// How Windows describes its cores: a record for each (SYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX of
// winnt.h), with its length at byte 4 and the core's efficiency class at byte 9. A higher class is
// a faster kind; if all are alike it is 0.

// fastestCores counts the cores of the highest class; 0 if the records are damaged.
func fastestCores(records []byte) int {
	const lengthAt, classAt, least = 4, 9, 32
	n, highest := 0, byte(0)
	for len(records) > 0 {
		if len(records) < least {
			return 0
		}
		length := int(binary.LittleEndian.Uint32(records[lengthAt:]))
		if length < least || length > len(records) {
			return 0
		}
		switch class := records[classAt]; {
		case class > highest:
			n, highest = 1, class
		case class == highest:
			n++
		}
		records = records[length:]
	}
	return n
}
