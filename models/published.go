package models

// The SHA-256 of the weight files that OpenAI has published, in the order of their numbers, at the
// commits 6cee5e81ee83917806bbde320786a8fb61efebee of gpt-oss-20b and
// b5c939de8f754692c1647ca79fbf85e8c1e70f8a of gpt-oss-120b. They are the names of the contents in
// Git LFS, as recorded by several people who downloaded the files.

import "fmt"

var published = map[string][]string{
	"openai/gpt-oss-20b": {
		"16d0f997dcfc4462089d536bffe51b4bcea2f872f5c430be09ef8ed392312427",
		"4fbe328ab445455d6f58dc73852b85873bd626986310abd91cd4d2ce3245eaea",
		"a18106b209e9ab35c3406db4f6f12a927364a058b21e9d1373d682e20674b303",
	},
	"openai/gpt-oss-120b": {
		"695218884684c611fe08a74751ee443f971e9bd9bc062edba822da3fe45969b7",
		"a881aa5f561b26a22b14a8262aa61849ace349ffd73d74769e030ac90a1fcf8a",
		"022478dd04398c5bdb545a5be0a6437ecc2eb53d1dbd29edafcfff4b3ddf0a41",
		"47aee9e7b9d5bedb215042c01ccededd9bd9c30b0dddea862dc2506b9d6c74de",
		"f6c2752acda607b1d5ca52df9e75c1b9b2761e6875ff10c9bd6ddac473c0262e",
		"0c8dd401544c31cb93b8459eee7da20ea2a07626a59455d7d92b85257df9b46c",
		"28d839f2e027985a8b14e45f2323798862eddb7770ee9800ea6b7c803abee489",
		"c8958c5f183c04f6ea959cfd90562b5128124154b2bbf979b8a22b9405b30ed8",
		"bf1f2a88868ffc37d520dcf77d26f0e823710b5e682d473ff10f6974fa3b7517",
		"f72d34a4004241b45c332b61f8ffa124e9a913bc1ab442b66e717d3e94e741ce",
		"f48c867c2cb0a44bfc2f8768cb98e4aec9a350946fceacfebdcad5d32ad4a471",
		"a06851b2cfd35f48722f823bc1ab8f7bcb4a878a5b8e975f4d3544f230454eeb",
		"3af33667c307e20ae2a7648ea52653de46dd0171601ec5c696e47a2f5d5bf1e4",
		"bcbcb74b043e071d1e05471d500d74dcf661175e00878ed302ccdf1801a75aef",
		"54b1be1609696c307cc5ca117b1fa54feaddebffa04e9c2db117652a01964230",
	},
}

// Published returns the SHA-256 of a repository's weight files by name, or nil if this version does
// not know them.
func Published(repository string) map[string]string {
	sums := published[repository]
	if sums == nil {
		return nil
	}
	named := map[string]string{}
	for i, sum := range sums {
		named[fmt.Sprintf("model-%05d-of-%05d.safetensors", i, len(sums)-1)] = sum
	}
	return named
}
