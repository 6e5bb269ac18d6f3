import CImprintKernels
import Testing

private typealias Matrix = [[Double]]

/// The transform matrices of F(4x4, 3x3) from Lavin & Gray, "Fast algorithms for convolutional neural networks", 2015.
private let inputMatrix: Matrix = [
    [4, 0, -5, 0, 1, 0], [0, -4, -4, 1, 1, 0], [0, 4, -4, -1, 1, 0], [0, -2, -1, 2, 1, 0], [0, 2, -1, -2, 1, 0],
    [0, 4, 0, -5, 0, 1],
]
private let weightsMatrix: Matrix = [
    [1 / 4, 0, 0], [-1 / 6, -1 / 6, -1 / 6], [-1 / 6, 1 / 6, -1 / 6], [1 / 24, 1 / 12, 1 / 6],
    [1 / 24, -1 / 12, 1 / 6],
    [0, 0, 1],
]
private let outputMatrix: Matrix = [
    [1, 1, 1, 1, 1, 0], [0, 1, -1, 2, -2, 0], [0, 1, 1, 4, 4, 0], [0, 1, -1, 8, -8, 1],
]

private func transposed(_ a: Matrix) -> Matrix { a[0].indices.map { j in a.map { $0[j] } } }

private func product(_ a: Matrix, _ b: Matrix) -> Matrix {
    a.map { row in b[0].indices.map { j in row.indices.reduce(0) { $0 + row[$1] * b[$1][j] } } }
}

/// Returns a x aᵀ.
private func transform(_ a: Matrix, _ x: Matrix) -> Matrix { product(product(a, x), transposed(a)) }

private func matrix(_ size: Int, _ value: (Int, Int) -> Double) -> Matrix {
    (0..<size).map { i in (0..<size).map { j in value(i, j) } }
}

/// Expects the values in a buffer that a kernel wrote; `expected` is NaN at indices that it must not write.
private func expectEqual(_ values: [Float], _ expected: [Double], _ comment: Comment) {
    let scale = expected.reduce(0) { $1.isNaN ? $0 : max($0, abs($1)) }
    let wrong = values.indices.filter {
        expected[$0].isNaN ? !values[$0].isNaN : !(abs(Double(values[$0]) - expected[$0]) <= 1e-5 * scale)
    }
    #expect(wrong.isEmpty && values.count == expected.count, comment)
}

/// The tiles of a batch of images, starting with the second row of tiles, or with `firstRow`.
private struct Tiles: CustomStringConvertible {
    static let images = 3

    var c: imprint_tiles
    var firstRow: Int
    var rows: Int { Self.images * Int(c.tile_rows) - firstRow }
    var count: Int { rows * Int(c.tile_columns) }
    var inputCount: Int { Self.images * Int(c.height * c.width * c.channels) }
    var outputCount: Int { Self.images * Int(c.output_height * c.output_width * c.output_channels) }
    var description: String {
        "\(c.channels) to \(c.output_channels) channels, output \(c.output_height) x \(c.output_width), "
            + "padding \(c.padding_top), \(c.padding_left)"
    }

    init(output: (Int, Int), padding: (Int, Int), channels: Int, outputChannels: Int) {
        c = imprint_tiles(
            height: Int32(max(output.0 + 1 - padding.0, 1)),
            width: Int32(max(output.1 + 1 - padding.1, 1)), channels: Int32(channels),
            output_height: Int32(output.0), output_width: Int32(output.1), output_channels: Int32(outputChannels),
            padding_top: Int32(padding.0), padding_left: Int32(padding.1), tile_rows: Int32((output.0 + 3) / 4),
            tile_columns: Int32((output.1 + 3) / 4))
        firstRow = 1
    }

    /// Calls `body(tile, image, y, x)` for every tile, with the first pixel of its output.
    func forEachTile(_ body: (Int, Int, Int, Int) -> Void) {
        for tile in 0..<count {
            let (row, column) = (firstRow + tile / Int(c.tile_columns), tile % Int(c.tile_columns))
            body(tile, row / Int(c.tile_rows), row % Int(c.tile_rows) * 4, column * 4)
        }
    }

    func inputIndex(_ image: Int, _ y: Int, _ x: Int, _ channel: Int) -> Int? {
        let (height, width) = (Int(c.height), Int(c.width))
        guard (0..<height).contains(y), (0..<width).contains(x) else { return nil }
        return ((image * height + y) * width + x) * Int(c.channels) + channel
    }

    func outputIndex(_ image: Int, _ y: Int, _ x: Int, _ channel: Int) -> Int? {
        let (height, width) = (Int(c.output_height), Int(c.output_width))
        guard y < height, x < width else { return nil }
        return ((image * height + y) * width + x) * Int(c.output_channels) + channel
    }

    /// The tiles of the input gradient, which is a convolution of the output gradient with the padding 2 − padding.
    var inputGradient: Tiles {
        let (top, left) = (Int(c.padding_top), Int(c.padding_left))
        var tiles = Tiles(
            output: (Int(c.height), Int(c.width)), padding: (2 - top, 2 - left), channels: Int(c.output_channels),
            outputChannels: Int(c.channels))
        (tiles.c.height, tiles.c.width, tiles.firstRow) = (c.output_height, c.output_width, 0)
        return tiles
    }
}

/// The 36 matrices, with a gap after each.
private struct Matrices {
    static let gap = 5

    let stride: Int
    var values: [Float]

    init(of count: Int) {
        stride = count + Self.gap
        values = [Float](repeating: .nan, count: 36 * stride)
    }

    func square(at index: Int) -> Matrix { matrix(6) { Double(values[(6 * $0 + $1) * stride + index]) } }

    /// Returns the 36 matrices [rows, columns], transposed.
    func transposed(_ rows: Int, _ columns: Int) -> Matrices {
        var result = self
        for k in 0..<36 {
            for i in 0..<rows {
                for j in 0..<columns { result.values[k * stride + j * rows + i] = values[k * stride + i * columns + j] }
            }
        }
        return result
    }

    /// Returns the 36 products of matrices [rows, depth] and [depth, columns].
    func times(_ other: Matrices, _ rows: Int, _ depth: Int, _ columns: Int) -> Matrices {
        var result = Matrices(of: rows * columns)
        for k in 0..<36 {
            for i in 0..<rows {
                for j in 0..<columns {
                    var sum = 0.0
                    for l in 0..<depth {
                        sum +=
                            Double(values[k * stride + i * depth + l])
                            * Double(other.values[k * other.stride + l * columns + j])
                    }
                    result.values[k * result.stride + i * columns + j] = Float(sum)
                }
            }
        }
        return result
    }
}

private func write(_ square: Matrix, to values: inout [Double], stride: Int, at index: Int) {
    for (i, row) in square.enumerated() {
        for (j, value) in row.enumerated() { values[(6 * i + j) * stride + index] = value }
    }
}

@Suite struct WinogradKernelTests {
    static let channels = [1, 3, 15, 16, 17, 40]
    static let outputs = [(1, 1), (4, 4), (5, 7), (9, 6)]
    static let paddings = [(0, 0), (1, 1), (2, 2), (0, 2), (2, 1)]
    /// The output channels of a kernel, and the first channel and size of a panel.
    static let panels = [
        (1, 0, 1), (3, 1, 2), (15, 0, 15), (16, 0, 16), (17, 0, 17), (17, 1, 16), (40, 0, 40), (40, 16, 16),
        (40, 17, 3),
        (40, 3, 23), (40, 24, 16),
    ]

    @Test("The input transform is V = Bᵀ d B", arguments: channels)
    func input(_ channels: Int) {
        for output in Self.outputs {
            for padding in Self.paddings {
                let tiles = Tiles(output: output, padding: padding, channels: channels, outputChannels: 1)
                let x = randomValues(tiles.inputCount, "x")
                var v = Matrices(of: tiles.count * channels)
                var expected = [Double](repeating: .nan, count: v.values.count)
                tiles.forEachTile { tile, image, y, left in
                    for c in 0..<channels {
                        let d = matrix(6) {
                            tiles.inputIndex(image, y - padding.0 + $0, left - padding.1 + $1, c).map { Double(x[$0]) }
                                ?? 0
                        }
                        write(
                            transform(inputMatrix, d), to: &expected, stride: v.stride, at: tile * channels + c)
                    }
                }
                withUnsafePointer(to: tiles.c) {
                    imprint_winograd_input($0, x, tiles.firstRow, tiles.rows, &v.values, v.stride)
                }
                expectEqual(v.values, expected, "\(tiles)")
            }
        }
    }

    @Test("The output transform is y = Aᵀ M A and writes only the channels of the panel", arguments: panels)
    func output(_ channels: Int, _ first: Int, _ panel: Int) {
        for output in Self.outputs {
            let tiles = Tiles(output: output, padding: (1, 1), channels: 1, outputChannels: channels)
            var m = Matrices(of: tiles.count * panel)
            m.values = randomValues(m.values.count, "m")
            var y = [Float](repeating: .nan, count: tiles.outputCount)
            var expected = [Double](repeating: .nan, count: tiles.outputCount)
            tiles.forEachTile { tile, image, top, left in
                for c in 0..<panel {
                    let pixels = transform(outputMatrix, m.square(at: tile * panel + c))
                    for i in 0..<4 {
                        for j in 0..<4 {
                            guard let index = tiles.outputIndex(image, top + i, left + j, first + c) else { continue }
                            expected[index] = pixels[i][j]
                        }
                    }
                }
            }
            withUnsafePointer(to: tiles.c) {
                imprint_winograd_output($0, m.values, m.stride, first, panel, tiles.firstRow, tiles.rows, &y)
            }
            expectEqual(y, expected, "\(tiles)")
        }
    }

    @Test("The transform of the output gradient is dM = A dy Aᵀ", arguments: channels)
    func outputGradient(_ channels: Int) {
        for output in Self.outputs {
            let tiles = Tiles(output: output, padding: (1, 1), channels: 1, outputChannels: channels)
            let dy = randomValues(tiles.outputCount, "dy")
            var dm = Matrices(of: tiles.count * channels)
            var expected = [Double](repeating: .nan, count: dm.values.count)
            tiles.forEachTile { tile, image, top, left in
                for c in 0..<channels {
                    let pixels = matrix(4) {
                        tiles.outputIndex(image, top + $0, left + $1, c).map { Double(dy[$0]) } ?? 0
                    }
                    write(
                        transform(transposed(outputMatrix), pixels), to: &expected, stride: dm.stride,
                        at: tile * channels + c)
                }
            }
            withUnsafePointer(to: tiles.c) {
                imprint_winograd_output_gradient($0, dy, tiles.firstRow, tiles.rows, &dm.values, dm.stride)
            }
            expectEqual(dm.values, expected, "\(tiles)")
        }
    }

    @Test("The weight transform is U = G g Gᵀ of the output channels of the panel", arguments: panels)
    func weights(_ outputs: Int, _ first: Int, _ panel: Int) {
        let inputs = 5
        let w = randomValues(9 * inputs * outputs, "w")
        var u = Matrices(of: inputs * panel)
        var expected = [Double](repeating: .nan, count: u.values.count)
        for i in 0..<inputs {
            for o in 0..<panel {
                let g = matrix(3) { Double(w[((3 * $0 + $1) * inputs + i) * outputs + first + o]) }
                write(transform(weightsMatrix, g), to: &expected, stride: u.stride, at: i * panel + o)
            }
        }
        imprint_winograd_weights(w, nil, inputs, outputs, first, panel, &u.values, u.stride)
        expectEqual(u.values, expected, "\(outputs) channels, \(panel) from \(first) on")
    }

    @Test("The weight transform with factors equals that of scaled weights", arguments: panels + [(200, 3, 150)])
    func scaledWeights(_ outputs: Int, _ first: Int, _ panel: Int) {
        let inputs = 5
        let w = randomValues(9 * inputs * outputs, "w")
        let factors = randomValues(outputs, "factors")
        let scaled = w.indices.map { factors[$0 % outputs] * w[$0] }
        var (u, expected) = (Matrices(of: inputs * panel), Matrices(of: inputs * panel))
        imprint_winograd_weights(w, factors, inputs, outputs, first, panel, &u.values, u.stride)
        imprint_winograd_weights(scaled, nil, inputs, outputs, first, panel, &expected.values, expected.stride)
        expectBitwiseEqual(u.values, expected.values, "\(outputs) channels, \(panel) from \(first) on")
    }

    @Test("The rotated weight transform has the input channels of the panel", arguments: panels, [1, 5, 16, 35])
    func rotatedWeights(_ inputs: (Int, Int, Int), _ outputs: Int) {
        let (inputs, first, panel) = inputs
        let w = randomValues(9 * inputs * outputs, "w")
        var u = Matrices(of: outputs * panel)
        var expected = [Double](repeating: .nan, count: u.values.count)
        for o in 0..<outputs {
            for i in 0..<panel {
                let g = matrix(3) { Double(w[((3 * (2 - $0) + 2 - $1) * inputs + first + i) * outputs + o]) }
                write(transform(weightsMatrix, g), to: &expected, stride: u.stride, at: o * panel + i)
            }
        }
        imprint_winograd_rotated_weights(w, inputs, outputs, first, panel, &u.values, u.stride)
        expectEqual(u.values, expected, "\(inputs) to \(outputs) channels, \(panel) from \(first) on")
    }

    @Test("The weight gradient is dg = Gᵀ dU G of only the output channels of the panel", arguments: panels)
    func weightsGradient(_ outputs: Int, _ first: Int, _ panel: Int) {
        let inputs = 5
        var du = Matrices(of: inputs * panel)
        du.values = randomValues(du.values.count, "du")
        var dw = [Float](repeating: .nan, count: 9 * inputs * outputs)
        var expected = [Double](repeating: .nan, count: dw.count)
        for i in 0..<inputs {
            for o in 0..<panel {
                let dg = transform(transposed(weightsMatrix), du.square(at: i * panel + o))
                for p in 0..<3 {
                    for q in 0..<3 { expected[((3 * p + q) * inputs + i) * outputs + first + o] = dg[p][q] }
                }
            }
        }
        imprint_winograd_weights_gradient(du.values, du.stride, inputs, outputs, first, panel, &dw)
        expectEqual(dw, expected, "\(outputs) channels, \(panel) from \(first) on")
    }

    @Test("Transforms and matrix products give a convolution, forward and backward", arguments: paddings)
    func convolution(_ padding: (Int, Int)) {
        for (output, inputs, outputs) in [((5, 7), 3, 17), ((9, 6), 16, 16), ((4, 4), 40, 5)] {
            var tiles = Tiles(output: output, padding: padding, channels: inputs, outputChannels: outputs)
            tiles.firstRow = 0
            let x = randomValues(tiles.inputCount, "x")
            let w = randomValues(9 * inputs * outputs, "w")
            let dy = randomValues(tiles.outputCount, "dy")
            let expected = directConvolution(tiles, x, w, dy)

            var u = Matrices(of: inputs * outputs)
            imprint_winograd_weights(w, nil, inputs, outputs, 0, outputs, &u.values, u.stride)
            let v = transformedInput(tiles, x)
            expectEqual(transformedOutput(tiles, v.times(u, tiles.count, inputs, outputs)), expected.y, "y, \(tiles)")

            imprint_winograd_rotated_weights(w, inputs, outputs, 0, inputs, &u.values, u.stride)
            let backward = tiles.inputGradient
            let dm = transformedInput(backward, dy).times(u, backward.count, outputs, inputs)
            expectEqual(transformedOutput(backward, dm), expected.dx, "dx, \(tiles)")

            var gradient = Matrices(of: tiles.count * outputs)
            withUnsafePointer(to: tiles.c) {
                imprint_winograd_output_gradient($0, dy, 0, tiles.rows, &gradient.values, gradient.stride)
            }
            let du = v.transposed(tiles.count, inputs).times(gradient, inputs, tiles.count, outputs)
            var dw = [Float](repeating: .nan, count: w.count)
            imprint_winograd_weights_gradient(du.values, du.stride, inputs, outputs, 0, outputs, &dw)
            expectEqual(dw, expected.dw, "dw, \(tiles)")
        }
    }

    private func transformedInput(_ tiles: Tiles, _ x: [Float]) -> Matrices {
        var v = Matrices(of: tiles.count * Int(tiles.c.channels))
        withUnsafePointer(to: tiles.c) { imprint_winograd_input($0, x, 0, tiles.rows, &v.values, v.stride) }
        return v
    }

    private func transformedOutput(_ tiles: Tiles, _ m: Matrices) -> [Float] {
        var y = [Float](repeating: .nan, count: tiles.outputCount)
        let channels = Int(tiles.c.output_channels)
        withUnsafePointer(to: tiles.c) {
            imprint_winograd_output($0, m.values, m.stride, 0, channels, 0, tiles.rows, &y)
        }
        return y
    }

    private func directConvolution(
        _ tiles: Tiles, _ x: [Float], _ w: [Float], _ dy: [Float]
    ) -> (y: [Double], dx: [Double], dw: [Double]) {
        let (inputs, outputs) = (Int(tiles.c.channels), Int(tiles.c.output_channels))
        let (top, left) = (Int(tiles.c.padding_top), Int(tiles.c.padding_left))
        var y = [Double](repeating: 0, count: dy.count)
        var dx = [Double](repeating: 0, count: x.count)
        var dw = [Double](repeating: 0, count: w.count)
        for pixel in 0..<dy.count / outputs {
            let (row, column) = pixel.quotientAndRemainder(dividingBy: Int(tiles.c.output_width))
            let (image, i) = row.quotientAndRemainder(dividingBy: Int(tiles.c.output_height))
            for tap in 0..<9 {
                guard let first = tiles.inputIndex(image, i + tap / 3 - top, column + tap % 3 - left, 0) else {
                    continue
                }
                for c in 0..<inputs {
                    for o in 0..<outputs {
                        let (to, from, weight) = (pixel * outputs + o, first + c, (tap * inputs + c) * outputs + o)
                        y[to] += Double(x[from]) * Double(w[weight])
                        dx[from] += Double(dy[to]) * Double(w[weight])
                        dw[weight] += Double(dy[to]) * Double(x[from])
                    }
                }
            }
        }
        return (y, dx, dw)
    }
}
