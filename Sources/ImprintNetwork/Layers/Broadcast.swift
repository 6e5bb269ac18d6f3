internal import CImprintKernels

/// Broadcasting of inputs whose height, width and channel count each equal the output's or are 1.
struct Broadcast {
    /// The shape of the output.
    let output: TensorShape

    /// Creates the broadcast of these inputs after checking that their shapes are compatible.
    init(_ layer: String, _ inputs: [TensorShape]) throws(NetworkError) {
        let inputs = try severalInputs(layer, inputs)
        let output = TensorShape(
            height: inputs.reduce(1) { max($0, $1.height) }, width: inputs.reduce(1) { max($0, $1.width) },
            channels: inputs.reduce(1) { max($0, $1.channels) })
        let fits = inputs.allSatisfy {
            ($0.height == output.height || $0.height == 1) && ($0.width == output.width || $0.width == 1)
                && ($0.channels == output.channels || $0.channels == 1)
        }
        guard fits else {
            throw .inputShape(
                layer: layer, found: inputs,
                reason:
                    "heights, widths and channels must each be equal, or 1 to broadcast along that axis")
        }
        self.output = output
    }

    init(output: TensorShape) { self.output = output }

    /// One operand of a batch.
    struct Operand {
        let values: UnsafePointer<Float>
        let shape: TensorShape
        /// The distance between images; 0 if all images share the values.
        let imageStride: Int

        init(_ values: UnsafePointer<Float>, _ shape: TensorShape) {
            self.values = values
            self.shape = shape
            imageStride = shape.count
        }

        init(_ activation: Activation) { self.init(activation.values, activation.shape) }

        /// Creates an operand from a scalar.
        init(scalar: UnsafePointer<Float>) {
            values = scalar
            shape = TensorShape(channels: 1)
            imageStride = 0
        }
    }

    typealias Function = (
        UnsafePointer<Float>, imprint_strides, UnsafePointer<Float>, imprint_strides, UnsafeMutablePointer<Float>,
        Int, Int
    ) -> Void

    /// Computes y = f(a, b) elementwise for the first `batch` images; y may alias an operand that has the output's shape.
    func combine(
        _ a: Operand, _ b: Operand, into y: UnsafeMutablePointer<Float>, batch: Int, worker: Worker,
        _ function: Function
    ) {
        if isLikeOutput(a) && isLikeOutput(b) {
            let strides = imprint_strides(pixel: 0, channel: 1)
            worker.parallelFor(batch * output.count) { range in
                let start = range.lowerBound
                function(a.values + start, strides, b.values + start, strides, y + start, 1, range.count)
            }
            return
        }
        let (aStrides, bStrides) = (strides(a.shape), strides(b.shape))
        let lines = batch * output.height
        let chunks = min(lines, max(1, batch * output.count / (1 << 15)))
        worker.forEachChunk(chunks) { chunk in
            for line in lines * chunk / chunks..<lines * (chunk + 1) / chunks {
                let (image, row) = line.quotientAndRemainder(dividingBy: output.height)
                function(
                    rowStart(a, image, row), aStrides, rowStart(b, image, row), bStrides,
                    y + line * output.width * output.channels, output.width, output.channels)
            }
        }
    }

    /// Computes dx = `factor` · Σ `values` · `other` (or Σ `values`) over the axes along which `shape` has length 1.
    ///
    /// One worker sums an image, in order, so the result does not depend on the number of workers. The context's scratch memory
    /// needs `scratchByteCount` bytes.
    func sum(
        _ values: UnsafePointer<Float>, times other: Operand?, into dx: UnsafeMutablePointer<Float>,
        _ shape: TensorShape,
        factor: Double = 1, batch: Int, _ context: LayerContext
    ) {
        let sums = context.scratch.assumingMemoryBound(to: Double.self)
        // If no operand is broadcast along only one of height and width, all rows are summed as one.
        let isOneRow = spansRows(shape) && other.map { spansRows($0.shape) } ?? true
        let sumStrides = isOneRow ? stridesOfJoinedRows(shape) : strides(shape)
        let otherShape = other?.shape ?? output
        let otherStrides = isOneRow ? stridesOfJoinedRows(otherShape) : strides(otherShape)
        let rows = isOneRow ? 1 : output.height
        let pixels = isOneRow ? output.pixels : output.width
        context.forEachImage(batch) { image in
            let first = sums + image * shape.count
            first.update(repeating: 0, count: shape.count)
            for row in 0..<rows {
                imprint_product_sums(
                    values + (image * rows + row) * pixels * output.channels, other.map { rowStart($0, image, row) },
                    otherStrides, first + (shape.height > 1 ? row * shape.width * shape.channels : 0), sumStrides,
                    pixels, output.channels)
            }
            let result = dx + image * shape.count
            for index in 0..<shape.count { result[index] = Float(first[index] * factor) }
        }
    }

    /// The bytes of scratch memory that `sum` needs for inputs of these shapes.
    func scratchByteCount(_ shapes: [TensorShape], batch: Int) -> Int {
        let largest = shapes.filter { $0 != output }.reduce(0) { max($0, $1.count) }
        return batch * largest * MemoryLayout<Double>.stride
    }

    /// Whether an operand has the output's shape and a value for each image, unlike a scalar for an output of one value.
    private func isLikeOutput(_ operand: Operand) -> Bool {
        operand.shape == output && operand.imageStride == output.count
    }

    private func spansRows(_ shape: TensorShape) -> Bool {
        shape.pixels == 1 || (shape.height == output.height && shape.width == output.width)
    }

    private func strides(_ shape: TensorShape) -> imprint_strides {
        imprint_strides(pixel: shape.width > 1 ? shape.channels : 0, channel: shape.channels > 1 ? 1 : 0)
    }

    /// The strides over all pixels of an operand as one row; unlike `strides`, correct for a width of 1.
    private func stridesOfJoinedRows(_ shape: TensorShape) -> imprint_strides {
        imprint_strides(pixel: shape.pixels > 1 ? shape.channels : 0, channel: shape.channels > 1 ? 1 : 0)
    }

    /// Returns the start of a row of an operand.
    private func rowStart(_ operand: Operand, _ image: Int, _ row: Int) -> UnsafePointer<Float> {
        operand.values + image * operand.imageStride
            + (operand.shape.height > 1 ? row * operand.shape.width * operand.shape.channels : 0)
    }
}
