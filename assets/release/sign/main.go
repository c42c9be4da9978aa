// Command sign signs the checksums of a release: VERSION FOLDER writes FOLDER/checksums.txt.minisig
// with the secret key in OSSRUN_RELEASE_KEY; the public key is in assets/release/checksums. The
// release workflow builds it without the key, and runs it alone with the key.
//
//	sign VERSION FOLDER
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ossrun/ossrun/assets/release/checksums"
)

const variable = "OSSRUN_RELEASE_KEY"

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: sign VERSION FOLDER")
		os.Exit(2)
	}
	if err := sign(os.Args[1], os.Args[2], os.Getenv(variable), checksums.Key); err != nil {
		fmt.Fprintln(os.Stderr, "sign:", err)
		os.Exit(1)
	}
}

func sign(version, folder, secret, key string) error {
	if secret == "" {
		return errors.New(variable + " is not set; docs/release.md says how the key is made")
	}
	list, err := os.ReadFile(filepath.Join(folder, checksums.File))
	if err != nil {
		return err
	}
	signature, err := checksums.Sign(list, secret, key, version)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, checksums.Signature), signature, 0o644)
}
