import CImprintKernels
import TestSupport
import Testing

@testable import ImprintNetwork

/// The C kernels for uint8 activations and int8 weights, against plain loops.
@Suite struct Int8KernelTests {
    struct Shape: Sendable, CustomTestStringConvertible {
        let size: Int
        let inputs: Int
        let outputs: Int
        let kernel: Int
        var stride = 1
        var hasShortcut = false
        var testDescription: String {
            "\(inputs) to \(outputs) channels, kernel \(kernel), stride \(stride), \(size)x\(size)"
                + (hasShortcut ? ", shortcut" : "")
        }
    }

    /// Random numbers of an operation, with a value per channel in arrays that kernels may read beyond the last channel.
    private struct Values {
        let x: [UInt8]
        let weights: [Float]
        let inputScales: [Float]
        let zeroPoints: [UInt8]
        let weightScales: [Float]
        var factors: [Float]
        var bias: [Float]
        var floor: [Float]
        var ceiling: [Float]

        init(pixels: Int, inputs: Int, outputs: Int, weights count: Int) {
            func bytes(_ count: Int, _ name: String) -> [UInt8] {
                randomValues(count, name).map { UInt8(min(max(128 + 100 * $0, 0), 255)) }
            }
            x = bytes(pixels * inputs, "x")
            weights = randomValues(count, "weights")
            inputScales = randomValues(inputs, "input scales").map { 0.5 + abs($0) }
            zeroPoints = bytes(inputs, "zero points")
            let largest = 2 * (weights.map(abs).max() ?? 1) * (inputScales.max() ?? 1) / 127
            // Half of the largest scale, so that some weights are clamped.
            weightScales = randomValues(outputs, "scales").map { largest * (0.4 + 0.1 * abs($0)) }
            let padded = (outputs + 63) / 64 * 64
            func channels(_ values: [Float]) -> [Float] { values + [Float](repeating: 0, count: padded - outputs) }
            let size = Float(count / outputs).squareRoot()
            factors = channels(randomValues(outputs, "factors").map { 0.01 * (0.5 + abs($0)) / size })
            bias = channels(randomValues(outputs, "bias").map { 100 + 20 * $0 })
            floor = channels([Float](repeating: 10, count: outputs))
            ceiling = channels((0..<outputs).map { 200 + Float($0 % 55) })
        }

        /// The arrays with a value per channel, in the order of `imprint_int8_output`.
        var channelArrays: [[Float]] { [factors, bias, floor, ceiling] }

        func integer(_ index: Int, input: Int, output: Int) -> Int {
            let scaled = weights[index] * inputScales[input] / weightScales[output]
            return Int(min(max(scaled.rounded(.toNearestOrEven), -127), 127))
        }

        /// The value of an output channel before it is rounded to uint8.
        func output(_ sum: Int, _ channel: Int, shortcut: Float? = nil) -> Float {
            var value = Float(sum) * factors[channel]
            value += bias[channel]
            if let shortcut { value += shortcut }
            return min(max(value, floor[channel]), ceiling[channel])
        }
    }

    static let productShapes = [
        Shape(size: 1, inputs: 4, outputs: 1, kernel: 1), Shape(size: 3, inputs: 8, outputs: 17, kernel: 1),
        Shape(size: 5, inputs: 12, outputs: 40, kernel: 3),
        Shape(size: 4, inputs: 4, outputs: 64, kernel: 3, stride: 2),
        Shape(size: 7, inputs: 16, outputs: 65, kernel: 1, hasShortcut: true),
        Shape(size: 2, inputs: 36, outputs: 130, kernel: 2, stride: 2, hasShortcut: true),
    ]

    @Test("A product equals the sum of exact integer products", arguments: productShapes)
    func product(_ shape: Shape) {
        let width = (shape.size - 1) * shape.stride + shape.kernel
        let (pixels, outputs) = (shape.size * shape.size, shape.outputs)
        let values = Values(
            pixels: width * width, inputs: shape.inputs, outputs: outputs,
            weights: shape.kernel * shape.kernel * shape.inputs * outputs)
        let inner = shape.kernel * shape.kernel * shape.inputs
        var panels = [Int8](repeating: 1, count: inner * (outputs + 63) / 64 * 64 + inner * 64)
        var corrections = [Int32](repeating: 0, count: outputs)
        for first in stride(from: 0, to: outputs, by: 64) {
            imprint_pack_int8(
                values.weights, shape.kernel * shape.kernel, shape.inputs, shape.inputs, outputs, values.inputScales,
                values.zeroPoints, values.weightScales, first, min(64, outputs - first), &panels[first * inner],
                &corrections[first])
        }
        let shortcut = (0..<(pixels * outputs)).map { UInt8($0 % 251) }
        let shortcutFactors = values.factors.map { $0 * 7 }
        let taps = (0..<shape.kernel).map { Int32($0 * width * shape.inputs) }
        var bytes = [UInt8](repeating: 0, count: pixels * outputs)
        var floats = [Float](repeating: 0, count: pixels * outputs)
        withPointers(to: values.channelArrays + [shortcutFactors], [values.x, shortcut]) { channels, activations in
            taps.withUnsafeBufferPointer { taps in
                var windows = imprint_int8_windows(
                    x: activations[0], width: shape.size, row_step: shape.stride * width * shape.inputs,
                    column_step: shape.stride * shape.inputs, taps: taps.baseAddress, tap_count: shape.kernel,
                    tap_bytes: shape.kernel * shape.inputs)
                func multiply(_ bytes: UnsafeMutablePointer<UInt8>?, _ floats: UnsafeMutablePointer<Float>?) {
                    var target = imprint_int8_output(
                        factors: channels[0], bias: channels[1], floor: channels[2], ceiling: channels[3],
                        shortcut: shape.hasShortcut ? UnsafePointer(activations[1]) : nil,
                        shortcut_factors: channels[4], bytes: bytes, floats: floats)
                    for first in stride(from: 0, to: outputs, by: 64) {
                        panels.withUnsafeBufferPointer { panels in
                            let panel = panels.baseAddress.map { $0 + first * inner }
                            // Two parts, as threads share them.
                            imprint_int8_product(&windows, 0, pixels / 2, panel, first, outputs, &target)
                            imprint_int8_product(
                                &windows, pixels / 2, pixels - pixels / 2, panel, first, outputs, &target)
                        }
                    }
                }
                bytes.withUnsafeMutableBufferPointer { multiply($0.baseAddress, nil) }
                floats.withUnsafeMutableBufferPointer { multiply(nil, $0.baseAddress) }
            }
        }
        for output in 0..<outputs {
            var correction = 0
            for k in 0..<inner {
                let input = k % shape.inputs
                correction +=
                    values.integer(k * outputs + output, input: input, output: output) * Int(values.zeroPoints[input])
            }
            #expect(corrections[output] == Int32(correction))
        }
        for pixel in 0..<pixels {
            let start = (pixel / shape.size * width + pixel % shape.size) * shape.stride * shape.inputs
            for output in 0..<outputs {
                var sum = 0
                for k in 0..<inner {
                    let (tap, rest) = k.quotientAndRemainder(dividingBy: shape.kernel * shape.inputs)
                    let x = values.x[start + tap * width * shape.inputs + rest]
                    sum += Int(x) * values.integer(k * outputs + output, input: k % shape.inputs, output: output)
                }
                let index = pixel * outputs + output
                let added = shape.hasShortcut ? Float(shortcut[index]) * shortcutFactors[output] : nil
                let expected = values.output(sum, output, shortcut: added)
                #expect(floats[index] == expected)
                #expect(bytes[index] == UInt8(expected.rounded(.toNearestOrEven)))
            }
        }
    }

    static let depthwiseShapes = [
        Shape(size: 1, inputs: 1, outputs: 1, kernel: 3), Shape(size: 5, inputs: 64, outputs: 64, kernel: 3),
        Shape(size: 4, inputs: 70, outputs: 70, kernel: 3, stride: 2),
        Shape(size: 3, inputs: 17, outputs: 17, kernel: 5),
        Shape(size: 6, inputs: 130, outputs: 130, kernel: 5, stride: 2),
        Shape(size: 3, inputs: 20, outputs: 20, kernel: 7),
        Shape(size: 3, inputs: 20, outputs: 20, kernel: 3, stride: 3),
    ]

    @Test("A depthwise convolution equals the sum of exact integer products", arguments: depthwiseShapes)
    func depthwise(_ shape: Shape) {
        let width = (shape.size - 1) * shape.stride + shape.kernel
        let (pixels, channels) = (shape.size * shape.size, shape.outputs)
        let elements = shape.kernel * shape.kernel
        var values = Values(
            pixels: width * width, inputs: channels, outputs: channels, weights: elements * channels)
        let expectedValues = values
        var bytes = [UInt8](repeating: 0, count: pixels * channels)
        var corrections = [Int32](repeating: 0, count: channels)
        values.x.withUnsafeBufferPointer { x in
            var operation = imprint_int8_depthwise(
                x: x.baseAddress, weights: nil, channels: channels, output_width: Int32(shape.size),
                kernel_height: Int32(shape.kernel), kernel_width: Int32(shape.kernel),
                stride_height: Int32(shape.stride),
                stride_width: Int32(shape.stride), dilation_height: 1, dilation_width: 1,
                row_step: shape.stride * width * channels, column_step: shape.stride * channels,
                tap_row_step: width * channels, tap_column_step: channels, is_uint8: 1)
            var packed = [Int8](repeating: 1, count: imprint_int8_depthwise_bytes(&operation))
            imprint_int8_depthwise_pack(
                &operation, values.weights, values.inputScales, values.zeroPoints, values.weightScales, &packed,
                &corrections)
            for array in [\Values.factors, \Values.bias, \Values.floor, \Values.ceiling] {
                imprint_int8_depthwise_arrange(&operation, &values[keyPath: array])
            }
            withPointers(to: values.channelArrays, [bytes]) { arrays, results in
                packed.withUnsafeBufferPointer { packed in
                    operation.weights = packed.baseAddress
                    var target = imprint_int8_output(
                        factors: arrays[0], bias: arrays[1], floor: arrays[2], ceiling: arrays[3], shortcut: nil,
                        shortcut_factors: nil, bytes: results[0], floats: nil)
                    imprint_int8_depthwise_forward(&operation, 0, 1, &target)
                    imprint_int8_depthwise_forward(&operation, 1, shape.size - 1, &target)
                }
                bytes = Array(UnsafeBufferPointer(start: results[0], count: bytes.count))
            }
        }
        for channel in 0..<channels {
            var correction = 0
            for element in 0..<elements {
                correction +=
                    expectedValues.integer(element * channels + channel, input: channel, output: channel)
                    * Int(values.zeroPoints[channel])
            }
            #expect(corrections[channel] == Int32(correction))
            for pixel in 0..<pixels {
                let start = (pixel / shape.size * width + pixel % shape.size) * shape.stride * channels + channel
                var sum = 0
                for element in 0..<elements {
                    let offset = (element / shape.kernel * width + element % shape.kernel) * channels
                    sum +=
                        Int(values.x[start + offset])
                        * expectedValues.integer(element * channels + channel, input: channel, output: channel)
                }
                let expected = expectedValues.output(sum, channel)
                #expect(bytes[pixel * channels + channel] == UInt8(expected.rounded(.toNearestOrEven)))
            }
        }
    }

    @Test("Values are rounded to the nearest integer and clamped", arguments: [1, 3, 16, 37])
    func quantize(channels: Int) {
        let special: [Float] = [0.5, 1.5, -100, 1e9, .infinity, -.infinity, .nan, 254.5]
        let x = special.flatMap { [Float](repeating: $0, count: channels) }
        let factors = [Float](repeating: 1, count: channels)
        let zeros = [Float](repeating: 0, count: channels)
        var y = [UInt8](repeating: 7, count: x.count)
        imprint_quantize(x, factors, zeros, special.count, channels, &y)
        let expected: [UInt8] = [0, 2, 0, 255, 255, 0, 0, 254]
        #expect(y == expected.flatMap { [UInt8](repeating: $0, count: channels) })
        var back = [Float](repeating: 0, count: y.count)
        imprint_dequantize(y, factors.map { _ in 0.5 }, zeros.map { _ in 2 }, special.count, channels, &back)
        #expect(back == y.map { (Float($0) - 2) * 0.5 })
    }

    @Test("An average of integers is exact up to its last rounding", arguments: [1, 5, 300])
    func average(channels: Int) {
        let pixels = 49
        let x = (0..<(pixels * channels)).map { UInt8(($0 * 37) % 256) }
        let scales = randomValues(channels, "scales").map { 0.1 + abs($0) }
        let zeros = (0..<channels).map { Float($0 % 3) }
        var y = [Float](repeating: 0, count: channels)
        imprint_average_uint8(x, scales, zeros, pixels, channels, &y)
        for channel in 0..<channels {
            let sum = stride(from: channel, to: x.count, by: channels).reduce(0) { $0 + Int(x[$1]) }
            let expected = (Double(sum) / Double(pixels) - Double(zeros[channel])) * Double(scales[channel])
            #expect(y[channel] == Float(expected))
        }
    }
}

/// Calls `body` with copies of arrays in memory.
private func withPointers(
    to floats: [[Float]], _ bytes: [[UInt8]],
    _ body: ([UnsafeMutablePointer<Float>], [UnsafeMutablePointer<UInt8>]) -> Void
) {
    func copy<Element>(_ values: [Element]) -> UnsafeMutablePointer<Element> {
        let memory = UnsafeMutablePointer<Element>.allocate(capacity: max(values.count, 1))
        memory.initialize(from: values, count: values.count)
        return memory
    }
    let (floatMemory, byteMemory) = (floats.map(copy), bytes.map(copy))
    defer {
        for memory in floatMemory { memory.deallocate() }
        for memory in byteMemory { memory.deallocate() }
    }
    body(floatMemory, byteMemory)
}
