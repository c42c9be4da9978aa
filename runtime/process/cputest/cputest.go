// Package cputest tells tests what processor time a thread or a process has had: unlike the time
// by the clock it is little changed by what else the machine does, so a test can be held to it.
package cputest
