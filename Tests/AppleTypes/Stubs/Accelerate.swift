// swift-format-ignore-file
// CBLAS as vecLib declares it without ACCELERATE_NEW_LAPACK.
public struct CBLAS_ORDER: RawRepresentable, Equatable, Sendable {
    public var rawValue: UInt32
    public init(rawValue: UInt32) { self.rawValue = rawValue }
}

public let CblasRowMajor = CBLAS_ORDER(rawValue: 101)

public struct CBLAS_TRANSPOSE: RawRepresentable, Equatable, Sendable {
    public var rawValue: UInt32
    public init(rawValue: UInt32) { self.rawValue = rawValue }
}

public let CblasNoTrans = CBLAS_TRANSPOSE(rawValue: 111)
public let CblasTrans = CBLAS_TRANSPOSE(rawValue: 112)

public func cblas_sgemm(
    _ __Order: CBLAS_ORDER, _ __TransA: CBLAS_TRANSPOSE, _ __TransB: CBLAS_TRANSPOSE, _ __M: Int32, _ __N: Int32,
    _ __K: Int32, _ __alpha: Float, _ __A: UnsafePointer<Float>!, _ __lda: Int32, _ __B: UnsafePointer<Float>!,
    _ __ldb: Int32, _ __beta: Float, _ __C: UnsafeMutablePointer<Float>!, _ __ldc: Int32
) { fatalError() }

public func cblas_sgemv(
    _ __Order: CBLAS_ORDER, _ __TransA: CBLAS_TRANSPOSE, _ __M: Int32, _ __N: Int32, _ __alpha: Float,
    _ __A: UnsafePointer<Float>!, _ __lda: Int32, _ __X: UnsafePointer<Float>!, _ __incX: Int32, _ __beta: Float,
    _ __Y: UnsafeMutablePointer<Float>!, _ __incY: Int32
) { fatalError() }

public struct BLAS_THREADING: RawRepresentable, Equatable, Sendable {
    public var rawValue: UInt32
    public init(rawValue: UInt32) { self.rawValue = rawValue }
}

public let BLAS_THREADING_MULTI_THREADED = BLAS_THREADING(rawValue: 0)
public let BLAS_THREADING_SINGLE_THREADED = BLAS_THREADING(rawValue: 1)

// Imported C functions may be called without using their result.
@discardableResult
public func BLASSetThreading(_ threading: BLAS_THREADING) -> Int32 { fatalError() }

public func BLASGetThreading() -> BLAS_THREADING { fatalError() }
