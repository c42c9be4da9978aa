// AVX2 for the passes over every logit; row_amd64.go says what they are. Each step of exp2Steps is one instruction here,
// in the same order, without fused multiply-add, and lane j sums what sum j of denseMassGo sums: the results are equal to
// the last bit.

#include "textflag.h"

// func denseMassAVX2(v *[64]float32, least float32, highest, scale float64) float64
TEXT ·denseMassAVX2(SB), NOSPLIT, $0-40
	MOVQ         v+0(FP), SI
	LEAQ         ·expTable(SB), DI
	LEAQ         ·expConstants(SB), R8
	VBROADCASTSS least+8(FP), X1
	VCVTPS2PD    X1, Y1               // least
	VBROADCASTSD highest+16(FP), Y2
	VBROADCASTSD scale+24(FP), Y3
	VBROADCASTSD 0(R8), Y4            // roundSteps
	VBROADCASTSD 8(R8), Y5            // expC3
	VBROADCASTSD 16(R8), Y6           // expC2
	VBROADCASTSD 24(R8), Y7           // expC1
	VBROADCASTSD 32(R8), Y8           // 1
	VBROADCASTSD 40(R8), Y9           // the bits expSteps - 1
	VXORPD       Y0, Y0, Y0           // the four sums
	MOVQ         $16, CX

quad:
	VCVTPS2PD  (SI), Y10
	VCMPPD     $0x1D, Y1, Y10, Y11      // x >= least
	VSUBPD     Y2, Y10, Y10
	VMULPD     Y3, Y10, Y10             // t
	VADDPD     Y4, Y10, Y12             // m = t + roundSteps
	VANDPD     Y9, Y12, Y13             // k % expSteps
	VPSRLQ     $10, Y12, Y14
	VPSLLQ     $52, Y14, Y14            // k / expSteps in the exponent
	VSUBPD     Y4, Y12, Y12
	VSUBPD     Y12, Y10, Y10            // r = t - (m - roundSteps)
	VPCMPEQD   Y15, Y15, Y15
	VXORPD     Y12, Y12, Y12
	VGATHERQPD Y15, (DI)(Y13*8), Y12
	VPADDQ     Y14, Y12, Y12            // pow
	VMULPD     Y5, Y10, Y13
	VADDPD     Y6, Y13, Y13
	VMULPD     Y10, Y13, Y13
	VADDPD     Y7, Y13, Y13
	VMULPD     Y10, Y13, Y13
	VADDPD     Y8, Y13, Y13
	VMULPD     Y12, Y13, Y13
	VANDPD     Y11, Y13, Y13            // 0 for what is not kept
	VADDPD     Y13, Y0, Y0
	ADDQ       $16, SI
	DECQ       CX
	JNZ        quad

	VEXTRACTF128 $1, Y0, X1
	VHADDPD      X1, X0, X0            // s0 + s1, s2 + s3
	VPERMILPD    $1, X0, X1
	VADDSD       X1, X0, X0
	VMOVSD       X0, ret+32(FP)
	VZEROUPPER
	RET

// func scanAVX2(logits, maxima *float32, blocks int) uint32
TEXT ·scanAVX2(SB), NOSPLIT, $0-28
	MOVQ     logits+0(FP), SI
	MOVQ     maxima+8(FP), DI
	MOVQ     blocks+16(FP), CX
	VPCMPEQD Y15, Y15, Y15
	VPSRLD   $1, Y15, Y15     // all bits but the sign
	VPXOR    Y14, Y14, Y14    // the largest of them

block:
	VMOVUPS 0(SI), Y0
	VMOVUPS 32(SI), Y1
	VMOVUPS 64(SI), Y2
	VMOVUPS 96(SI), Y3
	VMOVUPS 128(SI), Y4
	VMOVUPS 160(SI), Y5
	VMOVUPS 192(SI), Y6
	VMOVUPS 224(SI), Y7
	VPAND   Y0, Y15, Y8
	VPAND   Y1, Y15, Y9
	VPMAXUD Y8, Y9, Y8
	VPAND   Y2, Y15, Y10
	VPAND   Y3, Y15, Y11
	VPMAXUD Y10, Y11, Y10
	VPAND   Y4, Y15, Y12
	VPAND   Y5, Y15, Y13
	VPMAXUD Y12, Y13, Y12
	VPAND   Y6, Y15, Y9
	VPAND   Y7, Y15, Y11
	VPMAXUD Y9, Y11, Y9
	VPMAXUD Y8, Y10, Y8
	VPMAXUD Y12, Y9, Y12
	VPMAXUD Y8, Y14, Y14
	VPMAXUD Y12, Y14, Y14
	VMAXPS  Y0, Y1, Y0
	VMAXPS  Y2, Y3, Y2
	VMAXPS  Y4, Y5, Y4
	VMAXPS  Y6, Y7, Y6
	VMAXPS  Y0, Y2, Y0
	VMAXPS  Y4, Y6, Y4
	VMAXPS  Y0, Y4, Y0

	VEXTRACTF128 $1, Y0, X1
	VMAXPS       X0, X1, X0
	VPERMILPS    $0x4E, X0, X1
	VMAXPS       X0, X1, X0
	VPERMILPS    $0xB1, X0, X1
	VMAXSS       X0, X1, X0
	VMOVSS       X0, (DI)
	ADDQ         $256, SI
	ADDQ         $4, DI
	DECQ         CX
	JNZ          block

	VEXTRACTI128 $1, Y14, X1
	VPMAXUD      X14, X1, X14
	VPSHUFD      $0x4E, X14, X1
	VPMAXUD      X14, X1, X14
	VPSHUFD      $0xB1, X14, X1
	VPMAXUD      X14, X1, X14
	VMOVD        X14, AX
	MOVL         AX, ret+24(FP)
	VZEROUPPER
	RET

// func keepAVX2(out, v *[64]float32, word uint64) float32
TEXT ·keepAVX2(SB), NOSPLIT, $0-28
	MOVQ         out+0(FP), DI
	MOVQ         v+8(FP), SI
	MOVQ         word+16(FP), AX
	VMOVDQU      ·laneBits(SB), Y1
	VBROADCASTSS ·banned(SB), Y2
	VMOVAPS      Y2, Y0           // the highest
	MOVQ         $8, CX

eight:
	VMOVD        AX, X3
	VPBROADCASTD X3, Y3
	VPAND        Y1, Y3, Y3
	VPCMPEQD     Y1, Y3, Y3       // all ones for what is allowed
	VMOVUPS      (SI), Y4
	VBLENDVPS    Y3, Y4, Y2, Y4
	VMOVUPS      Y4, (DI)
	VMAXPS       Y4, Y0, Y0
	SHRQ         $8, AX
	ADDQ         $32, SI
	ADDQ         $32, DI
	DECQ         CX
	JNZ          eight

	VEXTRACTF128 $1, Y0, X1
	VMAXPS       X0, X1, X0
	VPERMILPS    $0x4E, X0, X1
	VMAXPS       X0, X1, X0
	VPERMILPS    $0xB1, X0, X1
	VMAXSS       X0, X1, X0
	VMOVSS       X0, ret+24(FP)
	VZEROUPPER
	RET
