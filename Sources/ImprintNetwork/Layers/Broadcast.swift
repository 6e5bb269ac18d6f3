internal import CImprintKernels

/// Inputs of which each height, width and number of channels is the result's or 1, and then stands for all of that axis.
struct Broadcast {
    /// The shape of the result.
    let output: TensorShape

    /// Checks that the inputs fit together.
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
                    "heights, widths and channels must each be the same, or 1 where an input stands for all of an axis")
        }
        self.output = output
    }

    init(output: TensorShape) { self.output = output }

    /// One operand of a batch.
    struct Operand {
        let values: UnsafePointer<Float>
        let shape: TensorShape
        /// How far apart images lie; 0 where all have the same numbers.
        let imageStep: Int

        init(_ values: UnsafePointer<Float>, _ shape: TensorShape) {
            self.values = values
            self.shape = shape
            imageStep = shape.count
        }

        init(_ activation: Activation) { self.init(activation.values, activation.shape) }

        /// One number for everything.
        init(number: UnsafePointer<Float>) {
            values = number
            shape = TensorShape(channels: 1)
            imageStep = 0
        }
    }

    typealias Function = (
        UnsafePointer<Float>, imprint_steps, UnsafePointer<Float>, imprint_steps, UnsafeMutablePointer<Float>, Int, Int
    ) -> Void

    /// y = f(a, b) for the first `batch` images, number by number; y may be a or b where that has the result's shape.
    func combine(
        _ a: Operand, _ b: Operand, into y: UnsafeMutablePointer<Float>, batch: Int, worker: Worker,
        _ function: Function
    ) {
        if a.shape == output && b.shape == output {
            let steps = imprint_steps(pixel: 0, channel: 1)
            forEachRange(batch * output.count, worker) { range in
                let start = range.lowerBound
                function(a.values + start, steps, b.values + start, steps, y + start, 1, range.count)
            }
            return
        }
        let (aSteps, bSteps) = (steps(a.shape), steps(b.shape))
        let lines = batch * output.height
        let chunks = min(lines, max(1, batch * output.count / (1 << 15)))
        worker.forEachClaimed(chunks) { chunk in
            for line in lines * chunk / chunks..<lines * (chunk + 1) / chunks {
                let (image, row) = line.quotientAndRemainder(dividingBy: output.height)
                function(
                    place(a, image, row), aSteps, place(b, image, row), bSteps,
                    y + line * output.width * output.channels, output.width, output.channels)
            }
        }
    }

    /// dx = `factor` · the sum of `values` · `other`, or of `values`, over the axes along which `shape` has length 1.
    ///
    /// One image is summed by one worker, in order, so the sums do not depend on the workers. `scratch` has room for
    /// `scratchByteCount`.
    func sum(
        _ values: UnsafePointer<Float>, times other: Operand?, into dx: UnsafeMutablePointer<Float>,
        _ shape: TensorShape,
        factor: Double = 1, batch: Int, _ context: LayerContext
    ) {
        let sums = context.scratch.assumingMemoryBound(to: Double.self)
        // If no operand tells rows apart from pixels, all rows are summed as one.
        let isOneRow = spansRows(shape) && other.map { spansRows($0.shape) } ?? true
        let sumSteps = isOneRow ? stepsOfJoinedRows(shape) : steps(shape)
        let otherShape = other?.shape ?? output
        let otherSteps = isOneRow ? stepsOfJoinedRows(otherShape) : steps(otherShape)
        let rows = isOneRow ? 1 : output.height
        let pixels = isOneRow ? output.pixels : output.width
        context.forEachImage(batch) { image in
            let first = sums + image * shape.count
            first.update(repeating: 0, count: shape.count)
            for row in 0..<rows {
                imprint_product_sums(
                    values + (image * rows + row) * pixels * output.channels, other.map { place($0, image, row) },
                    otherSteps, first + (shape.height > 1 ? row * shape.width * shape.channels : 0), sumSteps, pixels,
                    output.channels)
            }
            let result = dx + image * shape.count
            for place in 0..<shape.count { result[place] = Float(first[place] * factor) }
        }
    }

    /// The scratch memory that sums of such shapes take.
    func scratchByteCount(_ shapes: [TensorShape], batch: Int) -> Int {
        let largest = shapes.filter { $0 != output }.reduce(0) { max($0, $1.count) }
        return batch * largest * MemoryLayout<Double>.stride
    }

    private func spansRows(_ shape: TensorShape) -> Bool {
        shape.pixels == 1 || (shape.height == output.height && shape.width == output.width)
    }

    private func steps(_ shape: TensorShape) -> imprint_steps {
        imprint_steps(pixel: shape.width > 1 ? shape.channels : 0, channel: shape.channels > 1 ? 1 : 0)
    }

    /// The steps through all pixels of an operand as one row, which is longer than 1 even for maps of width 1.
    private func stepsOfJoinedRows(_ shape: TensorShape) -> imprint_steps {
        imprint_steps(pixel: shape.pixels > 1 ? shape.channels : 0, channel: shape.channels > 1 ? 1 : 0)
    }

    /// Where an operand's row begins.
    private func place(_ operand: Operand, _ image: Int, _ row: Int) -> UnsafePointer<Float> {
        operand.values + image * operand.imageStep
            + (operand.shape.height > 1 ? row * operand.shape.width * operand.shape.channels : 0)
    }
}
