// Arithmetic with the shapes in a file, whose lengths may be any integers.

/// Returns the number of elements of a tensor; nil on overflow, or if an empty tensor has very long other axes.
///
/// The limit for empty tensors bounds loops over their axes.
func elementCount(_ shape: [Int]) -> Int? {
    guard let count = checkedProduct(shape) else { return nil }
    return count > 0 || shape.filter({ $0 != 0 }).reduce(1, *) <= 1 << 16 ? count : nil
}

/// Returns the product of the factors; nil if a factor is negative, or if the product of the non-zero factors overflows.
///
/// The product of any subset of the factors cannot overflow either.
func checkedProduct(_ factors: [Int]) -> Int? {
    var product = 1
    for factor in factors where factor != 0 {
        let (next, overflow) = product.multipliedReportingOverflow(by: factor)
        guard factor > 0, !overflow else { return nil }
        product = next
    }
    return factors.contains(0) ? 0 : product
}

/// Resolves a target shape, in which −1 is the remaining length and 0 copies the length; nil if the shape is invalid.
func resolved(_ target: [Int], of dimensions: [Int]) -> [Int]? {
    var result = target.indices.map { target[$0] == 0 && dimensions.indices.contains($0) ? dimensions[$0] : target[$0] }
    guard let count = checkedProduct(dimensions), result.filter({ $0 == -1 }).count <= 1 else { return nil }
    if let index = result.firstIndex(of: -1) {
        result[index] = 1
        guard let rest = checkedProduct(result), rest > 0, count % rest == 0 else { return nil }
        result[index] = count / rest
    }
    return result.allSatisfy { $0 > 0 } && checkedProduct(result) == count ? result : nil
}
