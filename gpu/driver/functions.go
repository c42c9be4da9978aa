package driver

// What is called in the two vendors' libraries, in one table. HIP copied the shape of CUDA's driver
// interface, so one row serves both; where they differ the row has two signatures and driver.go two
// branches. Nothing here comes from a header: `go run ./gpu/driver/declcheck` turns this table into
// C++ that compiles only where the vendors' own headers agree with it, and .ci/run does that.

// function is a row of the table.
type function int

const (
	initialize function = iota
	driverVersion
	errorName
	errorText
	deviceCount
	deviceGet
	deviceName
	deviceAttribute
	deviceTotal
	devicePCI
	contextRetain
	contextRelease
	contextUse
	memoryInfo
	memoryAlloc
	memoryFree
	hostAlloc
	hostFree
	copyIn
	copyOut
	copyInside
	copyPeer
	memorySet
	moduleLoad
	moduleUnload
	moduleFunction
	functionSet
	functionGet
	functionResident
	launchKernel
	launchCooperative
	streamCreate
	streamDestroy
	streamWait
	streamSynchronize
	eventCreate
	eventDestroy
	eventRecord
	eventSynchronize
	eventQuery
	eventElapsed
	captureBegin
	captureEnd
	graphInstantiate
	graphLaunch
	graphExecDestroy
	graphDestroy
	peerCanAccess
	peerEnable
	functions
)

// Declaration names a function and the shape of its arguments, a letter each:
//
//	b  an integer of 1 byte      I  a pointer to an object of 4 bytes
//	i  an integer of 4 bytes     W  a pointer to an object of 8 bytes
//	w  8 bytes: a size, a device address, a handle, or a pointer to bytes
//
// CUDA's names carry the version of the signature (cuMemAlloc_v2): that is the exported symbol,
// which a header hides behind a macro.
type Declaration struct {
	CUDA, CUDAArguments string
	HIP, HIPArguments   string // "": the library has none, or the arguments are CUDA's
}

// Declarations is the table, for declcheck.
func Declarations() []Declaration { return table[:] }

var table = [functions]Declaration{
	initialize:      {"cuInit", "i", "hipInit", ""},
	driverVersion:   {"cuDriverGetVersion", "I", "hipDriverGetVersion", ""},
	errorName:       {"cuGetErrorName", "iW", "hipGetErrorName", "i"},
	errorText:       {"cuGetErrorString", "iW", "hipGetErrorString", "i"},
	deviceCount:     {"cuDeviceGetCount", "I", "hipGetDeviceCount", ""},
	deviceGet:       {"cuDeviceGet", "Ii", "hipDeviceGet", ""},
	deviceName:      {"cuDeviceGetName", "wii", "hipDeviceGetName", ""},
	deviceAttribute: {"cuDeviceGetAttribute", "Iii", "hipDeviceGetAttribute", ""},
	deviceTotal:     {"cuDeviceTotalMem_v2", "Wi", "hipDeviceTotalMem", ""},
	devicePCI:       {"cuDeviceGetPCIBusId", "wii", "hipDeviceGetPCIBusId", ""},
	contextRetain:   {"cuDevicePrimaryCtxRetain", "Wi", "", ""},
	contextRelease:  {"cuDevicePrimaryCtxRelease_v2", "i", "", ""},
	contextUse:      {"cuCtxSetCurrent", "w", "hipSetDevice", "i"},
	memoryInfo:      {"cuMemGetInfo_v2", "WW", "hipMemGetInfo", ""},
	memoryAlloc:     {"cuMemAlloc_v2", "Ww", "hipMalloc", ""},
	memoryFree:      {"cuMemFree_v2", "w", "hipFree", ""},
	hostAlloc:       {"cuMemHostAlloc", "Wwi", "hipHostMalloc", ""},
	hostFree:        {"cuMemFreeHost", "w", "hipHostFree", ""},
	copyIn:          {"cuMemcpyHtoDAsync_v2", "wwww", "hipMemcpyHtoDAsync", ""},
	copyOut:         {"cuMemcpyDtoHAsync_v2", "wwww", "hipMemcpyDtoHAsync", ""},
	copyInside:      {"cuMemcpyDtoDAsync_v2", "wwww", "hipMemcpyDtoDAsync", ""},
	copyPeer:        {"cuMemcpyPeerAsync", "wwwwww", "hipMemcpyPeerAsync", "wiwiww"},
	memorySet:       {"cuMemsetD8Async", "wbww", "hipMemsetD8Async", ""},
	moduleLoad:      {"cuModuleLoadDataEx", "WwiIW", "hipModuleLoadDataEx", ""},
	moduleUnload:    {"cuModuleUnload", "w", "hipModuleUnload", ""},
	moduleFunction:  {"cuModuleGetFunction", "Www", "hipModuleGetFunction", ""},
	functionSet:     {"cuFuncSetAttribute", "wii", "hipFuncSetAttribute", ""},
	functionGet:     {"cuFuncGetAttribute", "Iiw", "hipFuncGetAttribute", ""},
	functionResident: {"cuOccupancyMaxActiveBlocksPerMultiprocessor", "Iwiw",
		"hipModuleOccupancyMaxActiveBlocksPerMultiprocessor", ""},
	launchKernel:      {"cuLaunchKernel", "wiiiiiiiwWW", "hipModuleLaunchKernel", ""},
	launchCooperative: {"cuLaunchCooperativeKernel", "wiiiiiiiwW", "", ""},
	streamCreate:      {"cuStreamCreate", "Wi", "hipStreamCreateWithFlags", ""},
	streamDestroy:     {"cuStreamDestroy_v2", "w", "hipStreamDestroy", ""},
	streamWait:        {"cuStreamWaitEvent", "wwi", "hipStreamWaitEvent", ""},
	streamSynchronize: {"cuStreamSynchronize", "w", "hipStreamSynchronize", ""},
	eventCreate:       {"cuEventCreate", "Wi", "hipEventCreateWithFlags", ""},
	eventDestroy:      {"cuEventDestroy_v2", "w", "hipEventDestroy", ""},
	eventRecord:       {"cuEventRecord", "ww", "hipEventRecord", ""},
	eventSynchronize:  {"cuEventSynchronize", "w", "hipEventSynchronize", ""},
	eventQuery:        {"cuEventQuery", "w", "hipEventQuery", ""},
	eventElapsed:      {"cuEventElapsedTime", "Iww", "hipEventElapsedTime", ""},
	captureBegin:      {"cuStreamBeginCapture_v2", "wi", "hipStreamBeginCapture", ""},
	captureEnd:        {"cuStreamEndCapture", "wW", "hipStreamEndCapture", ""},
	graphInstantiate:  {"cuGraphInstantiateWithFlags", "Www", "hipGraphInstantiateWithFlags", ""},
	graphLaunch:       {"cuGraphLaunch", "ww", "hipGraphLaunch", ""},
	graphExecDestroy:  {"cuGraphExecDestroy", "w", "hipGraphExecDestroy", ""},
	graphDestroy:      {"cuGraphDestroy", "w", "hipGraphDestroy", ""},
	peerCanAccess:     {"cuDeviceCanAccessPeer", "Iii", "hipDeviceCanAccessPeer", ""},
	peerEnable:        {"cuCtxEnablePeerAccess", "wi", "hipDeviceEnablePeerAccess", "ii"},
}

// symbol is the exported name for an API.
func (f function) symbol(api API) string {
	if api == HIP {
		return table[f].HIP
	}
	return table[f].CUDA
}

// Constant is a number that the library and this package must agree on: the headers' names for it,
// and its value in each API.
type Constant struct {
	CUDA   string
	HIP    string // "": HIP has none
	OfCUDA int
	OfHIP  int
}

// Constants are the numbers, for declcheck.
func Constants() []Constant { return append(fixed[:len(fixed):len(fixed)], attributes[:]...) }

// Flags and codes that this package passes or understands; the same in both APIs, which declcheck
// holds.
const (
	streamNonBlocking  = 1 // does not wait for the default stream
	eventTiming        = 0
	eventNoTiming      = 2
	captureThreadLocal = 1
	hostPortable       = 1 // pinned for every context

	codeSuccess        = 0
	codeOutOfMemory    = 2
	codeNotReady       = 600
	codePeerEnabled    = 704
	codeIllegalAddress = 700

	codeTimeout      = 702 // of a launch
	codeAssert       = 710
	codeStackError   = 714 // of a kernel's stack; HIP has none of these five
	codeIllegalCode  = 715
	codeMisaligned   = 716
	codeWrongSpace   = 717
	codeInvalidCode  = 718 // an address that is none of code
	codeLaunchFailed = 719

	functionShared  = 1 // bytes of static shared memory
	functionLocal   = 3 // bytes of local memory a thread: spills and arrays
	functionRegs    = 4
	functionDynamic = 8 // the most dynamic shared memory; above 48 KiB it must be asked for

	jitErrorLog     = 5
	jitErrorLogSize = 6
)

var fixed = []Constant{
	{"CU_STREAM_NON_BLOCKING", "hipStreamNonBlocking", streamNonBlocking, streamNonBlocking},
	{"CU_EVENT_DEFAULT", "hipEventDefault", eventTiming, eventTiming},
	{"CU_EVENT_DISABLE_TIMING", "hipEventDisableTiming", eventNoTiming, eventNoTiming},
	{"CU_STREAM_CAPTURE_MODE_THREAD_LOCAL", "hipStreamCaptureModeThreadLocal", captureThreadLocal,
		captureThreadLocal},
	{"CU_MEMHOSTALLOC_PORTABLE", "hipHostMallocPortable", hostPortable, hostPortable},
	{"CUDA_SUCCESS", "hipSuccess", codeSuccess, codeSuccess},
	{"CUDA_ERROR_OUT_OF_MEMORY", "hipErrorOutOfMemory", codeOutOfMemory, codeOutOfMemory},
	{"CUDA_ERROR_NOT_READY", "hipErrorNotReady", codeNotReady, codeNotReady},
	{"CUDA_ERROR_ILLEGAL_ADDRESS", "hipErrorIllegalAddress", codeIllegalAddress,
		codeIllegalAddress},
	{"CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", "hipErrorPeerAccessAlreadyEnabled", codePeerEnabled,
		codePeerEnabled},
	{"CUDA_ERROR_LAUNCH_TIMEOUT", "hipErrorLaunchTimeOut", codeTimeout, codeTimeout},
	{"CUDA_ERROR_ASSERT", "hipErrorAssert", codeAssert, codeAssert},
	{"CUDA_ERROR_HARDWARE_STACK_ERROR", "", codeStackError, 0},
	{"CUDA_ERROR_ILLEGAL_INSTRUCTION", "", codeIllegalCode, 0},
	{"CUDA_ERROR_MISALIGNED_ADDRESS", "", codeMisaligned, 0},
	{"CUDA_ERROR_INVALID_ADDRESS_SPACE", "", codeWrongSpace, 0},
	{"CUDA_ERROR_INVALID_PC", "", codeInvalidCode, 0},
	{"CUDA_ERROR_LAUNCH_FAILED", "hipErrorLaunchFailure", codeLaunchFailed, codeLaunchFailed},
	{"CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES", "HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES", functionShared,
		functionShared},
	{"CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES", "HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES", functionLocal,
		functionLocal},
	{"CU_FUNC_ATTRIBUTE_NUM_REGS", "HIP_FUNC_ATTRIBUTE_NUM_REGS", functionRegs, functionRegs},
	{"CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES",
		"hipFuncAttributeMaxDynamicSharedMemorySize", functionDynamic, functionDynamic},
	{"CU_JIT_ERROR_LOG_BUFFER", "", jitErrorLog, 0},
	{"CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES", "", jitErrorLogSize, 0},
}

// lost are the codes after which a context is dead.
var lost = [...]int{codeIllegalAddress, codeTimeout, codeAssert, codeStackError, codeIllegalCode,
	codeMisaligned, codeWrongSpace, codeInvalidCode, codeLaunchFailed}

// Attribute is a number that a device tells about itself.
type Attribute int

const (
	Major Attribute = iota // compute capability; of AMD the gfx major
	// compute capability; of AMD the gfx minor, without the stepping
	Minor
	Multiprocessors // SMs, compute units; of RDNA pairs of those
	ThreadsPerBlock
	WarpSize
	SharedPerBlock // bytes of shared memory a block may have, the opt-in included
	Cooperative    // a grid-wide barrier may be launched
	Integrated     // shares the host's memory
	L2Bytes
)

var attributes = [...]Constant{
	Major: {"CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR",
		"hipDeviceAttributeComputeCapabilityMajor", 75, 23},
	Minor: {"CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR",
		"hipDeviceAttributeComputeCapabilityMinor", 76, 61},
	Multiprocessors: {"CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT",
		"hipDeviceAttributeMultiprocessorCount", 16, 63},
	ThreadsPerBlock: {"CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK",
		"hipDeviceAttributeMaxThreadsPerBlock", 1, 56},
	WarpSize: {"CU_DEVICE_ATTRIBUTE_WARP_SIZE", "hipDeviceAttributeWarpSize", 10, 87},
	SharedPerBlock: {"CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN",
		"hipDeviceAttributeMaxSharedMemoryPerBlock", 97, 74},
	Cooperative: {"CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH",
		"hipDeviceAttributeCooperativeLaunch", 95, 10},
	Integrated: {"CU_DEVICE_ATTRIBUTE_INTEGRATED", "hipDeviceAttributeIntegrated", 18, 16},
	L2Bytes:    {"CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE", "hipDeviceAttributeL2CacheSize", 38, 19},
}
