/// The normalized correlation of the windows of a feature map with templates of the same size: their cosine similarity.
///
/// y[i, j, t] = ⟨x, wₜ⟩ / (‖x‖ · ‖wₜ‖), where x is the window of the map with its upper left corner at row i − top and column j −
/// left. The result is −1…1; it is 0 where the window or the template is all zeros. The map is zero-padded: a window may extend
/// beyond the border by a third of its size.
///
/// Map: [height, width, channels]. Templates: [window height, window width, channels] each. Result: [rows, columns, templates].
package struct NormalizedCorrelation: Sendable {
    /// The height and width of the templates, in positions of the map.
    package let window: Size2D
    /// The number of channels.
    package let channels: Int
    /// The number of templates.
    package let count: Int
    /// The templates, scaled to a norm of 1: [window height · window width · channels, templates].
    private let weights: [Float]

    /// Creates the correlation with templates of the given size.
    package init(window: Size2D, channels: Int, templates: [[Float]]) {
        let length = window.height * window.width * channels
        precondition(templates.allSatisfy { $0.count == length }, "every template must have \(length) values")
        self.window = window
        self.channels = channels
        count = templates.count
        var weights = [Float](repeating: 0, count: length * templates.count)
        for (index, template) in templates.enumerated() {
            let norm = template.reduce(0) { $0 + $1 * $1 }.squareRoot()
            guard norm > 0 else { continue }
            for (row, value) in template.enumerated() { weights[row * templates.count + index] = value / norm }
        }
        self.weights = weights
    }

    /// The number of rows above and columns left of the map that a window may include.
    package var padding: Size2D { Size2D(height: window.height / 3, width: window.width / 3) }

    /// Returns the number of rows and columns of the result; 0 if the map is smaller than a window without its padding.
    package func resultSize(height: Int, width: Int) -> (rows: Int, columns: Int) {
        (
            max(height + 2 * padding.height - window.height + 1, 0),
            max(width + 2 * padding.width - window.width + 1, 0)
        )
    }

    /// A feature map, [height, width, channels], with the squared norm of each position.
    package struct Map: Sendable {
        package let height: Int
        package let width: Int
        fileprivate let values: [Float]
        fileprivate let energies: [Float]

        /// Creates a map from its values.
        package init(_ values: [Float], height: Int, width: Int) {
            let channels = values.count / (height * width)
            precondition(
                values.count == height * width * channels,
                "\(values.count) values do not fill a map of \(height)x\(width) positions")
            self.values = values
            self.height = height
            self.width = width
            energies = values.withUnsafeBufferPointer { values in
                (0..<(height * width)).map { position in
                    var sum: Float = 0
                    for index in (position * channels)..<((position + 1) * channels) {
                        sum += values[index] * values[index]
                    }
                    return sum
                }
            }
        }
    }

    /// Computes the correlations with some windows of a map.
    /// - Parameter range: The windows, numbered in row-major order.
    /// - Returns: [windows, templates].
    /// - Throws: `NetworkError.outOfMemory`.
    package func callAsFunction(_ map: Map, windows range: Range<Int>) throws(NetworkError) -> [Float] {
        try GEMM.prepare()
        let columns = resultSize(height: map.height, width: map.width).columns
        let length = window.height * window.width * channels
        let windowCount = range.count
        let windows = [Float](unsafeUninitializedCapacity: windowCount * length) { windows, initialized in
            guard let target = windows.baseAddress else { return }
            for (offset, window) in range.enumerated() {
                copyWindow(map, window / columns, window % columns, to: target + offset * length)
            }
            initialized = windowCount * length
        }
        return [Float](unsafeUninitializedCapacity: windowCount * count) { result, initialized in
            guard let product = result.baseAddress else { return }
            windows.withUnsafeBufferPointer { windows in
                weights.withUnsafeBufferPointer { weights in
                    guard let windows = windows.baseAddress, let weights = weights.baseAddress else { return }
                    GEMM.multiply(
                        rows: windowCount, columns: count, inner: length, GEMM.Matrix(windows, stride: length),
                        GEMM.Matrix(weights, stride: count), into: product, stride: count)
                }
            }
            for (offset, window) in range.enumerated() {
                let energy = windowEnergy(map, window / columns, window % columns)
                let factor = energy > 0 ? 1 / energy.squareRoot() : 0
                for index in (offset * count)..<((offset + 1) * count) { product[index] *= factor }
            }
            initialized = windowCount * count
        }
    }

    private func windowEnergy(_ map: Map, _ row: Int, _ column: Int) -> Float {
        let (top, left) = (row - padding.height, column - padding.width)
        var sum: Float = 0
        for y in max(top, 0)..<min(top + window.height, map.height) {
            for x in max(left, 0)..<min(left + window.width, map.width) { sum += map.energies[y * map.width + x] }
        }
        return sum
    }

    /// Copies the window of a map at a position of the result, with zeros outside the map.
    private func copyWindow(_ map: Map, _ row: Int, _ column: Int, to windows: UnsafeMutablePointer<Float>) {
        let (top, left) = (row - padding.height, column - padding.width)
        let inside = max(left, 0)..<min(left + window.width, map.width)
        let rowLength = window.width * channels
        let before = (inside.lowerBound - left) * channels
        let copied = inside.count * channels
        map.values.withUnsafeBufferPointer { values in
            guard let source = values.baseAddress else { return }
            for y in 0..<window.height {
                let target = windows + y * rowLength
                guard (0..<map.height).contains(top + y) else {
                    target.update(repeating: 0, count: rowLength)
                    continue
                }
                target.update(repeating: 0, count: before)
                (target + before).update(
                    from: source + ((top + y) * map.width + inside.lowerBound) * channels, count: copied)
                (target + before + copied).update(repeating: 0, count: rowLength - before - copied)
            }
        }
    }
}
