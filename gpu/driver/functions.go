package driver

// The called functions of the two vendors' libraries, in one table. HIP copied the shape of CUDA's
// driver interface, so one row serves both; a row that differs has two signatures. .ci/run turns
// this table into C++ that compiles only if the vendors' headers agree (drivertest/declcheck).

// Declaration names a function and the shape of its arguments, a letter each:
//
//	b  an integer of 1 byte      I  a pointer to an object of 4 bytes
//	i  an integer of 4 bytes     W  a pointer to an object of 8 bytes
//	w  8 bytes: a size, a device address, a handle, or a pointer to bytes
//
// CUDA's names carry the version of the signature (cuMemAlloc_v2): that is the exported symbol;
// the headers have a macro of the plain name.
type Declaration struct {
	CUDA, CUDAArguments string
	HIP, HIPArguments   string // "": the library has none, or the arguments are CUDA's
}

var Declarations []Declaration

// function is a row of Declarations.
type function int

func declare(cuda, arguments, hip, hipArguments string) function {
	Declarations = append(Declarations, Declaration{cuda, arguments, hip, hipArguments})
	return function(len(Declarations) - 1)
}

var (
	initialize        = declare("cuInit", "i", "hipInit", "")
	driverVersion     = declare("cuDriverGetVersion", "I", "hipDriverGetVersion", "")
	errorName         = declare("cuGetErrorName", "iW", "hipGetErrorName", "i")
	errorText         = declare("cuGetErrorString", "iW", "hipGetErrorString", "i")
	deviceCount       = declare("cuDeviceGetCount", "I", "hipGetDeviceCount", "")
	deviceGet         = declare("cuDeviceGet", "Ii", "hipDeviceGet", "")
	deviceName        = declare("cuDeviceGetName", "wii", "hipDeviceGetName", "")
	deviceAttribute   = declare("cuDeviceGetAttribute", "Iii", "hipDeviceGetAttribute", "")
	deviceTotal       = declare("cuDeviceTotalMem_v2", "Wi", "hipDeviceTotalMem", "")
	devicePCI         = declare("cuDeviceGetPCIBusId", "wii", "hipDeviceGetPCIBusId", "")
	contextRetain     = declare("cuDevicePrimaryCtxRetain", "Wi", "", "")
	contextRelease    = declare("cuDevicePrimaryCtxRelease_v2", "i", "", "")
	contextUse        = declare("cuCtxSetCurrent", "w", "hipSetDevice", "i")
	memoryInfo        = declare("cuMemGetInfo_v2", "WW", "hipMemGetInfo", "")
	memoryAlloc       = declare("cuMemAlloc_v2", "Ww", "hipMalloc", "")
	memoryFree        = declare("cuMemFree_v2", "w", "hipFree", "")
	hostAlloc         = declare("cuMemHostAlloc", "Wwi", "hipHostMalloc", "")
	hostFree          = declare("cuMemFreeHost", "w", "hipHostFree", "")
	copyIn            = declare("cuMemcpyHtoDAsync_v2", "wwww", "hipMemcpyHtoDAsync", "")
	copyOut           = declare("cuMemcpyDtoHAsync_v2", "wwww", "hipMemcpyDtoHAsync", "")
	copyInside        = declare("cuMemcpyDtoDAsync_v2", "wwww", "hipMemcpyDtoDAsync", "")
	copyPeer          = declare("cuMemcpyPeerAsync", "wwwwww", "hipMemcpyPeerAsync", "wiwiww")
	memorySet         = declare("cuMemsetD8Async", "wbww", "hipMemsetD8Async", "")
	moduleLoad        = declare("cuModuleLoadDataEx", "WwiIW", "hipModuleLoadDataEx", "")
	moduleUnload      = declare("cuModuleUnload", "w", "hipModuleUnload", "")
	moduleFunction    = declare("cuModuleGetFunction", "Www", "hipModuleGetFunction", "")
	functionSet       = declare("cuFuncSetAttribute", "wii", "hipFuncSetAttribute", "")
	launchKernel      = declare("cuLaunchKernel", "wiiiiiiiwWW", "hipModuleLaunchKernel", "")
	launchKernelEx    = declare("cuLaunchKernelEx", "wwWW", "", "")
	streamCreate      = declare("cuStreamCreate", "Wi", "hipStreamCreateWithFlags", "")
	streamDestroy     = declare("cuStreamDestroy_v2", "w", "hipStreamDestroy", "")
	streamWait        = declare("cuStreamWaitEvent", "wwi", "hipStreamWaitEvent", "")
	streamSynchronize = declare("cuStreamSynchronize", "w", "hipStreamSynchronize", "")
	eventCreate       = declare("cuEventCreate", "Wi", "hipEventCreateWithFlags", "")
	eventDestroy      = declare("cuEventDestroy_v2", "w", "hipEventDestroy", "")
	eventRecord       = declare("cuEventRecord", "ww", "hipEventRecord", "")
	eventSynchronize  = declare("cuEventSynchronize", "w", "hipEventSynchronize", "")
	eventElapsed      = declare("cuEventElapsedTime", "Iww", "hipEventElapsedTime", "")
	captureBegin      = declare("cuStreamBeginCapture_v2", "wi", "hipStreamBeginCapture", "")
	captureEnd        = declare("cuStreamEndCapture", "wW", "hipStreamEndCapture", "")
	graphInstantiate  = declare("cuGraphInstantiateWithFlags", "Www",
		"hipGraphInstantiateWithFlags", "")
	graphLaunch      = declare("cuGraphLaunch", "ww", "hipGraphLaunch", "")
	graphExecDestroy = declare("cuGraphExecDestroy", "w", "hipGraphExecDestroy", "")
	graphDestroy     = declare("cuGraphDestroy", "w", "hipGraphDestroy", "")
)

func (f function) symbol(api API) string {
	if api == HIP {
		return Declarations[f].HIP
	}
	return Declarations[f].CUDA
}

// Constant is a number that the library and this package must agree on.
type Constant struct {
	CUDA   string
	HIP    string // "": HIP has none
	OfCUDA int
	OfHIP  int
}

// Constants are the flags, codes and attributes that this package passes or understands.
var Constants []Constant

// sameConstant is a number that is the same in both APIs.
func sameConstant(cuda, hip string, value int) int {
	Constants = append(Constants, Constant{cuda, hip, value, value})
	return value
}

var (
	streamNonBlocking  = sameConstant("CU_STREAM_NON_BLOCKING", "hipStreamNonBlocking", 1)
	eventTiming        = sameConstant("CU_EVENT_DEFAULT", "hipEventDefault", 0)
	eventNoTiming      = sameConstant("CU_EVENT_DISABLE_TIMING", "hipEventDisableTiming", 2)
	captureThreadLocal = sameConstant("CU_STREAM_CAPTURE_MODE_THREAD_LOCAL",
		"hipStreamCaptureModeThreadLocal", 1)
	// pinned for every context
	hostPortable       = sameConstant("CU_MEMHOSTALLOC_PORTABLE", "hipHostMallocPortable", 1)
	codeSuccess        = sameConstant("CUDA_SUCCESS", "hipSuccess", 0)
	codeOutOfMemory    = sameConstant("CUDA_ERROR_OUT_OF_MEMORY", "hipErrorOutOfMemory", 2)
	codeNotReady       = sameConstant("CUDA_ERROR_NOT_READY", "hipErrorNotReady", 600)
	codeIllegalAddress = sameConstant("CUDA_ERROR_ILLEGAL_ADDRESS", "hipErrorIllegalAddress", 700)
	codeTimeout        = sameConstant("CUDA_ERROR_LAUNCH_TIMEOUT", "hipErrorLaunchTimeOut", 702)
	codeAssert         = sameConstant("CUDA_ERROR_ASSERT", "hipErrorAssert", 710)
	// HIP has none of these five
	codeStackError   = sameConstant("CUDA_ERROR_HARDWARE_STACK_ERROR", "", 714)
	codeIllegalCode  = sameConstant("CUDA_ERROR_ILLEGAL_INSTRUCTION", "", 715)
	codeMisaligned   = sameConstant("CUDA_ERROR_MISALIGNED_ADDRESS", "", 716)
	codeWrongSpace   = sameConstant("CUDA_ERROR_INVALID_ADDRESS_SPACE", "", 717)
	codeInvalidCode  = sameConstant("CUDA_ERROR_INVALID_PC", "", 718)
	codeLaunchFailed = sameConstant("CUDA_ERROR_LAUNCH_FAILED", "hipErrorLaunchFailure", 719)
	// the most dynamic shared memory; above 48 KiB it must be asked for
	functionDynamic = sameConstant("CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES",
		"hipFuncAttributeMaxDynamicSharedMemorySize", 8)
	// a kernel may begin before the one in front of it has ended
	launchSerialization = sameConstant("CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION",
		"", 6)
	jitErrorLog     = sameConstant("CU_JIT_ERROR_LOG_BUFFER", "", 5)
	jitErrorLogSize = sameConstant("CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES", "", 6)

	// the codes after which a context is dead
	lost = []int{codeIllegalAddress, codeTimeout, codeAssert, codeStackError, codeIllegalCode,
		codeMisaligned, codeWrongSpace, codeInvalidCode, codeLaunchFailed}
)

// Attribute is a number that a device tells about itself: what the APIs call it.
type Attribute struct{ ofCUDA, ofHIP int }

func attribute(cuda, hip string, ofCUDA, ofHIP int) Attribute {
	Constants = append(Constants, Constant{cuda, hip, ofCUDA, ofHIP})
	return Attribute{ofCUDA, ofHIP}
}

var (
	// Major and Minor are the compute capability; of AMD the gfx numbers without the stepping.
	Major = attribute("CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR",
		"hipDeviceAttributeComputeCapabilityMajor", 75, 23)
	Minor = attribute("CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR",
		"hipDeviceAttributeComputeCapabilityMinor", 76, 61)
	// Multiprocessors are SMs or compute units; of RDNA pairs of those.
	Multiprocessors = attribute("CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT",
		"hipDeviceAttributeMultiprocessorCount", 16, 63)
	WarpSize = attribute("CU_DEVICE_ATTRIBUTE_WARP_SIZE", "hipDeviceAttributeWarpSize", 10, 87)
	// Integrated is 1 of a device that shares the host's memory.
	Integrated = attribute("CU_DEVICE_ATTRIBUTE_INTEGRATED", "hipDeviceAttributeIntegrated", 18, 16)
)
