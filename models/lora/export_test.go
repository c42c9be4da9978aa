package lora

// OtherBase is tested with the shapes of models that no test has.
var OtherBase = otherBase
