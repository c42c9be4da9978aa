package checkpoint

// Whether a model's weights are verified: by the catalogue's hashes, by the hub's during the pull,
// or not. Nothing is hashed here: a pull's hash counts if the file was not written to since.

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/store"
)

// Verification is the verification of weights, in one word.
type Verification string

const (
	Verified   Verification = "verified"   // every file has the SHA-256 that this version knows
	Pulled     Verification = "pulled"     // every file has the SHA-256 that the hub named
	Mismatched Verification = "other"      // as Pulled, but this version knows other hashes
	Unverified Verification = "unverified" // some file was not hashed, or changed since
)

// Sentence returns a sentence without its full stop.
func (v Verification) Sentence() string {
	return map[Verification]string{
		Verified: "Its weights have the published SHA-256",
		Pulled:   "Its weights have the SHA-256 that the hub named",
		Mismatched: "Its weights are not verified. They have the hub's SHA-256, not the " +
			"published one",
		Unverified: "Its weights are not verified. ossrun pull --verify checks them",
	}[v]
}

// Verification checks a snapshot of the cache. Anything else is Unverified.
func (f Model) Verification() Verification {
	if f.Repo == "" || !f.Complete {
		return Unverified
	}
	names, err := os.ReadDir(f.Path)
	sums, matched, mismatched := models.Published(f.Repo), 0, 0
	for _, e := range names {
		if !strings.HasSuffix(e.Name(), ".safetensors") {
			continue
		}
		sum, named := store.Hashed(filepath.Join(f.Path, e.Name()))
		switch {
		case sum != "" && sum == sums[e.Name()]:
			matched++
		case !named:
			return Unverified
		default:
			mismatched++
		}
	}
	switch {
	case err != nil || matched+mismatched == 0:
		return Unverified
	case matched == len(sums) && mismatched == 0:
		return Verified
	case sums != nil:
		return Mismatched
	}
	return Pulled
}
