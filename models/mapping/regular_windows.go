// Windows has no pipes in its file systems.

package mapping

const nonBlocking = 0
