// Package checksums signs the checksums of a release and reads them, in minisign's format, so that
// `ossrun version --verify` and the minisign program find the same.
//
// What must stay true: nothing of a list is read before its signature is verified with the key in
// this folder. A signature names its version, so that an older release's list, with its faults,
// does not pass as a newer one's.
package checksums

import (
	_ "embed"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/jedisct1/go-minisign"
)

// File has the checksums of a release, and Signature is the file of their signature.
const (
	File      = "checksums.txt"
	Signature = File + ".minisig"
)

// Key is the public key of the releases. Until the project has one it is a comment.
//
//go:embed key.pub
var Key string

// ErrNoKey is the error if Key is a comment.
var ErrNoKey = errors.New("this build has no release key, so it cannot be verified")

// HasKey reports whether key is a comment and a key, not only a comment.
func HasKey(key string) bool { return strings.Contains(strings.TrimSpace(key), "\n") }

// Name is the file name of a system's executable in the list.
func Name(version, system, arch string) string {
	return "ossrun_" + version + "_" + system + "_" + arch
}

// comment is the signed comment of a signature.
func comment(version string) string { return "ossrun " + version }

// Sign signs a version's list with a secret key without a password, which must match key.
func Sign(list []byte, secret, key, version string) ([]byte, error) {
	s, err := minisign.DecodePrivateKey(secret)
	if err != nil {
		return nil, errors.New("the secret key is not one of minisign's")
	}
	if s.IsEncrypted() {
		return nil, errors.New("the secret key has a password: make one with minisign -G -W")
	}
	signed, err := s.Sign(list, minisign.SignOptions{Hashed: true,
		TrustedComment: comment(version)})
	if err != nil {
		return nil, fmt.Errorf("sign the checksums: %w", err)
	}
	signature := signed.Encode()
	if _, err := Verify(list, signature, key, version); err != nil {
		return nil, fmt.Errorf("the signature does not hold: %w", err)
	}
	return signature, nil
}

// A List is the content of a verified list.
type List string

// Verify returns the list if key verifies the signature of the version's list.
func Verify(list, signature []byte, key, version string) (List, error) {
	if !HasKey(key) {
		return "", ErrNoKey
	}
	k, err := minisign.DecodePublicKey(key)
	if err != nil {
		return "", errors.New("the key of this build is damaged")
	}
	s, err := minisign.DecodeSignature(string(signature))
	if err != nil {
		return "", errors.New("the signature is not in minisign's format")
	}
	if s.KeyId != k.KeyId {
		return "", errors.New("the signature is by another key than this build has")
	}
	if ok, err := k.Verify(list, s); !ok || err != nil {
		return "", errors.New("the checksums are not those that were signed")
	}
	signed := strings.TrimPrefix(s.TrustedComment, "trusted comment: ")
	if signed != comment(version) {
		return "", fmt.Errorf("the signature is of %q, not of %q", signed, comment(version))
	}
	return List(list), nil
}

// Sum is the SHA-256 of a file in the list, or "".
func (l List) Sum(name string) string {
	line := regexp.MustCompile(`(?m)^([0-9a-f]{64})  ` + regexp.QuoteMeta(name) + "$")
	if m := line.FindStringSubmatch(string(l)); m != nil {
		return m[1]
	}
	return ""
}
