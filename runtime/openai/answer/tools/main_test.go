package tools_test

import (
	"context"
	"os"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"
)

// The test program is also the MCP server that it starts, where its first argument says so.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "mcp" {
		if named(os.Args[2], nil).Run(context.Background(), &sdk.StdioTransport{}) != nil {
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}
