/// Conversion between float32 and float16 (IEEE 754 binary16: 1 sign, 5 exponent, 10 fraction bits), by bit pattern.
enum Half {
    /// The largest finite float16.
    static let greatest: Float = 65504

    /// The bits of the float16 nearest to `value`, ties to even; nil when `value` is finite but rounds to infinity.
    static func bits(_ value: Float) -> UInt16? {
        let half = Float16(value)
        return half.isInfinite && value.isFinite ? nil : half.bitPattern
    }

    /// The float32 with exactly the value of the float16 of these `bits`.
    static func float(_ bits: UInt16) -> Float { Float(Float16(bitPattern: bits)) }
}
