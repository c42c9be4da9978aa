package driver

// KFDArch is kfdArch, for the test.
var KFDArch = kfdArch
