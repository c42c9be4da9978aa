package lora

// OtherBase is tried with the shapes of models that no test has.
var OtherBase = otherBase
