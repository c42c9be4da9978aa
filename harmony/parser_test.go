package harmony

// What the goldens and the fuzzer see of a Parser between two tokens.

// Role is that of the message whose content is being read, or that NewParser was given for the one
// whose header is.
func (p *Parser) Role() Role {
	if p.state == InContent {
		return p.message.Role
	}
	return p.role
}
