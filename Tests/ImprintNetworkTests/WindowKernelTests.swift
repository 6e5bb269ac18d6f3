import CImprintKernels
import ImprintCore
import Testing

@testable import ImprintNetwork

/// The kernels that slide a window over an image, against plain loops.
///
/// All numbers are small whole ones, so that sums are exact in any order and equal values meet in the windows.
@Suite struct WindowKernelTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let input: TensorShape
        let kernel: Size2D
        let stride: Size2D
        var dilation: Size2D = 1
        let padding: Padding

        var testDescription: String { "\(input): kernel \(kernel), stride \(stride), dilation \(dilation), \(padding)" }
        var window: imprint_window {
            Window(kernel: kernel, stride: stride, dilation: dilation, padding: padding).kernelWindow(over: input)
        }
        var naive: NaiveWindow {
            NaiveWindow(input: input, kernel: kernel, stride: stride, dilation: dilation, padding: padding)
        }
        var channels: Int { input.channels }
        var inputCount: Int { input.count }
        var outputCount: Int { naive.output.count }
        var weightCount: Int { kernel.height * kernel.width * channels }

        /// Whether every window holds a pixel of the image, as pools demand.
        var canPool: Bool {
            guard case .explicit(let top, let left, let bottom, let right) = padding else { return false }
            return max(top, bottom) < kernel.height && max(left, right) < kernel.width
        }

        /// Calls `body(output, tap, input)` with the places of a channel for every tap inside the image.
        func forEachValue(_ body: (_ output: Int, _ tap: Int, _ input: Int) -> Void) {
            naive.forEachTap(1) { outputPixel, tap, inputPixel in
                guard let inputPixel else { return }
                for c in 0..<channels {
                    body(outputPixel * channels + c, tap * channels + c, inputPixel * channels + c)
                }
            }
        }
    }

    /// Every kernel, stride and padding with each awkward number of channels, over images of 1 to 9 pixels a side.
    static let small: [Case] = {
        var cases: [Case] = []
        for channels in [1, 3, 15, 16, 17, 40, 64] {
            for kernel in [2, 3, 5, 7] {
                for stride in 1...3 {
                    for padding in 0...2 {
                        let (top, left, bottom, right) = (padding, (padding + 1) % 3, (padding + 2) % 3, padding)
                        let height = max(1 + cases.count * 4 % 9, kernel - top - bottom)
                        let width = max(1 + cases.count * 7 % 9, kernel - left - right)
                        cases.append(
                            Case(
                                input: TensorShape(height: height, width: width, channels: channels),
                                kernel: Size2D(kernel),
                                stride: Size2D(stride),
                                padding: .explicit(top: top, left: left, bottom: bottom, right: right)))
                    }
                }
            }
        }
        return cases
    }()

    /// Windows that are not square, dilated ones, more channels than are summed at once, and images beyond the caches.
    static let special: [Case] = [
        Case(
            input: TensorShape(height: 7, width: 9, channels: 18), kernel: Size2D(height: 3, width: 5),
            stride: Size2D(height: 2, width: 1), padding: .all(1)),
        Case(
            input: TensorShape(height: 9, width: 8, channels: 16), kernel: 3, stride: 1,
            dilation: Size2D(height: 2, width: 3), padding: .all(2)),
        Case(
            input: TensorShape(height: 9, width: 8, channels: 17), kernel: 3, stride: 2, dilation: 2, padding: .all(1)),
        Case(input: TensorShape(height: 12, width: 13, channels: 18), kernel: 5, stride: 1, padding: .all(2)),
        Case(input: TensorShape(height: 12, width: 13, channels: 3), kernel: 7, stride: 2, padding: .all(3)),
        Case(input: TensorShape(height: 7, width: 7, channels: 300), kernel: 3, stride: 1, padding: .all(1)),
        Case(input: TensorShape(height: 33, width: 31, channels: 136), kernel: 3, stride: 1, padding: .all(1)),
        Case(input: TensorShape(height: 33, width: 31, channels: 136), kernel: 3, stride: 2, padding: .all(1)),
        Case(input: TensorShape(height: 33, width: 31, channels: 136), kernel: 2, stride: 2, padding: .all(0)),
        Case(input: TensorShape(height: 33, width: 32, channels: 136), kernel: 5, stride: 2, padding: .all(2)),
    ]

    @Test(arguments: small + special) func convolvesEachChannel(_ test: Case) {
        let (x, weight) = (numbers(test.inputCount, "x"), numbers(test.weightCount, "weight"))
        let dy = numbers(test.outputCount, "dy")
        let before = numbers(test.weightCount, "dweight")
        var y = [Float](repeating: 0, count: test.outputCount)
        var dx = [Float](repeating: 0, count: test.inputCount)
        var dWeight = before
        test.forEachValue { output, tap, input in
            y[output] += x[input] * weight[tap]
            dx[input] += dy[output] * weight[tap]
            dWeight[tap] += x[input] * dy[output]
        }
        var window = test.window
        let rows = window.output_height
        var finish = imprint_finish(bias: nil, floor: -.infinity, ceiling: .infinity)
        expect(y, "y") { imprint_depthwise_forward(&window, x, weight, $0, 0, rows, &finish) }
        let bias = numbers(test.channels, "bias")
        let finished = y.indices.map { min(max(y[$0] + bias[$0 % test.channels], -0.5), 0.25) }
        bias.withUnsafeBufferPointer { bias in
            finish = imprint_finish(bias: bias.baseAddress, floor: -0.5, ceiling: 0.25)
            expect(finished, "y in two parts, finished") {
                let first = min(rows, 2)
                imprint_depthwise_forward(&window, x, weight, $0, first, rows - first, &finish)
                imprint_depthwise_forward(&window, x, weight, $0, 0, first, &finish)
            }
        }
        expect(dx, "dx") { imprint_depthwise_backward_input(&window, dy, weight, $0) }
        expect(dWeight, "dweight", from: before) { imprint_depthwise_backward_weight(&window, x, dy, $0) }
    }

    @Test(arguments: small + special) func copiesWindowsIntoRows(_ test: Case) {
        let pixels = test.naive.output.height * test.naive.output.width
        let taps = test.kernel.height * test.kernel.width
        // All of it; and what a group of channels in a block of pixels reads.
        let parts = [(0..<test.channels, 0..<pixels), (test.channels / 2..<test.channels, pixels / 3..<pixels)]
        for (channels, rows) in parts {
            let x = numbers(test.inputCount, "x")
            let before = numbers(test.inputCount, "dx")
            let dColumns = numbers(rows.count * taps * channels.count, "dcolumns")
            var columns = [Float](repeating: 0, count: dColumns.count)
            var dx = before
            test.naive.forEachTap(1) { pixel, tap, inputPixel in
                guard let inputPixel, rows.contains(pixel) else { return }
                for c in channels {
                    let column = ((pixel - rows.lowerBound) * taps + tap) * channels.count + c - channels.lowerBound
                    columns[column] = x[inputPixel * test.channels + c]
                    dx[inputPixel * test.channels + c] += dColumns[column]
                }
            }
            var window = test.window
            expect(columns, "columns of channels \(channels)") {
                imprint_im2col(&window, x, channels.lowerBound, channels.count, rows.lowerBound, rows.count, $0)
            }
            expect(dx, "dx of channels \(channels)", from: before) {
                imprint_col2im(&window, dColumns, channels.lowerBound, channels.count, rows.lowerBound, rows.count, $0)
            }
        }
    }

    @Test(arguments: (small + special).filter(\.canPool)) func findsTheLargestValue(_ test: Case) {
        let x = numbers(test.inputCount, "x")
        let dy = numbers(test.outputCount, "dy")
        var y = [Float](repeating: -.infinity, count: test.outputCount)
        var choice = [UInt8](repeating: 0, count: test.outputCount)
        test.forEachValue { output, tap, input in
            guard x[input] > y[output] else { return }
            y[output] = x[input]
            choice[output] = UInt8(tap / test.channels)
        }
        var dx = [Float](repeating: 0, count: test.inputCount)
        test.forEachValue { output, tap, input in
            if choice[output] == tap / test.channels { dx[input] += dy[output] }
        }
        var window = test.window
        var chosen = [UInt8](repeating: 255, count: choice.count + Self.guardCount)
        expect(y, "y") { imprint_max_pool_forward(&window, x, $0, &chosen) }
        #expect(chosen == choice + [UInt8](repeating: 255, count: Self.guardCount))
        expect(y, "y without choices") { imprint_max_pool_forward(&window, x, $0, nil) }
        expect(dx, "dx") { imprint_max_pool_backward(&window, dy, choice, $0) }
    }

    @Test func passesOnWhatIsNotANumber() {
        let test = Case(input: TensorShape(height: 4, width: 6, channels: 17), kernel: 2, stride: 2, padding: .all(0))
        var x = numbers(test.inputCount, "x")
        x[3] = .nan
        var y = [Float](repeating: 0, count: test.outputCount)
        var window = test.window
        imprint_max_pool_forward(&window, x, &y, nil)
        #expect(y[3].isNaN && y.filter(\.isNaN).count == 1)
    }

    @Test(arguments: (small + special).filter(\.canPool), [false, true])
    func takesTheMean(_ test: Case, countsPadding: Bool) {
        let x = numbers(test.inputCount, "x")
        let dy = numbers(test.outputCount, "dy")
        var y = [Float](repeating: 0, count: test.outputCount)
        var counts = [Int](repeating: 0, count: test.outputCount)
        test.forEachValue { output, _, input in
            y[output] += x[input]
            counts[output] += 1
        }
        if countsPadding { counts = counts.map { _ in test.kernel.height * test.kernel.width } }
        y = y.indices.map { y[$0] * (1 / Float(counts[$0])) }
        var dx = [Float](repeating: 0, count: test.inputCount)
        test.forEachValue { output, _, input in dx[input] += dy[output] / Float(counts[output]) }
        var window = test.window
        expect(y, "y") { imprint_average_pool_forward(&window, x, $0, countsPadding ? 1 : 0) }
        // Shares are no whole numbers: each of up to 49 sums may round once, at 4 units.
        expect(dx, "dx", within: 1e-4) { imprint_average_pool_backward(&window, dy, $0, countsPadding ? 1 : 0) }
    }

    /// As many numbers lie behind every result, to show whether a kernel writes too far.
    private static let guardCount = 64

    /// Whole numbers from -4 to 4.
    private func numbers(_ count: Int, _ name: String) -> [Float] {
        var random = RandomStream(seed: 1, name)
        return (0..<count).map { _ in Float(Int.random(in: -4...4, using: &random)) }
    }

    /// Checks what `kernel` writes over `start`, which is no number where nothing is to be kept.
    private func expect(
        _ expected: [Float], _ name: String, from start: [Float]? = nil, within tolerance: Float = 0,
        location: SourceLocation = #_sourceLocation, _ kernel: (UnsafeMutablePointer<Float>) -> Void
    ) {
        let behind = [Float](repeating: 12345, count: Self.guardCount)
        var result = (start ?? [Float](repeating: .nan, count: expected.count)) + behind
        result.withUnsafeMutableBufferPointer { kernel($0.baseAddress!) }
        if let wrong = expected.indices.first(where: { !(abs(result[$0] - expected[$0]) <= tolerance) }) {
            Issue.record("\(name)[\(wrong)] is \(result[wrong]), not \(expected[wrong])", sourceLocation: location)
        }
        #expect(Array(result[expected.count...]) == behind, "\(name): written too far", sourceLocation: location)
    }
}
