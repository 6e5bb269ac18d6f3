internal import ImprintModel
internal import ImprintNetwork

/// The conversions of Caffe's layer types (caffe.proto and the layer code, https://github.com/BVLC/caffe).
extension CaffeImporter {
    static let conversions: [String: Conversion] = [
        "Convolution": { layer, inputs, importer in
            let (p, blobs) = (layer.properties.message("convolution_param"), try importer.blobs(layer, atLeast: 1))
            let hasBias = p.bool("bias_term") ?? true
            guard blobs[0].shape.count == 4 else {
                throw importer.unsupported(layer, "weights \(blobs[0].shape), expected four axes")
            }
            if hasBias && blobs.count < 2 { _ = try importer.blobs(layer, atLeast: 2) }
            let kernel = pair(p, "kernel_size", "kernel_h", "kernel_w", default: 0)
            let outputs = p.integer("num_output") ?? 0
            guard blobs[0].shape[0] == outputs, Array(blobs[0].shape[2...]) == [kernel.height, kernel.width] else {
                throw ImportError.Problem.malformed(
                    reason: "\(layer.name) has weights \(blobs[0].shape) in the .caffemodel, "
                        + "but \(outputs) outputs and a kernel of \(kernel) in the architecture")
            }
            let padding = pair(p, "pad", "pad_h", "pad_w", default: 0)
            let geometry = NetworkAssembler.ConvolutionGeometry(
                stride: pair(p, "stride", "stride_h", "stride_w", default: 1),
                padding: .explicit(
                    top: padding.height, left: padding.width, bottom: padding.height, right: padding.width),
                dilation: pair(p, "dilation", "", "", default: 1), groups: p.integer("group") ?? 1)
            return [
                try importer.assembler.convolve(
                    inputs[0], geometry, weight: blobs[0], bias: hasBias ? blobs[1].floats : nil, named: layer.name)
            ]
        },
        "InnerProduct": { layer, inputs, importer in
            let (p, blobs) = (layer.properties.message("inner_product_param"), try importer.blobs(layer, atLeast: 1))
            let outputs = p.integer("num_output") ?? 0
            guard p.integer("axis") ?? 1 == 1 else { throw importer.unsupported(layer, "an axis other than 1") }
            let hasBias = p.bool("bias_term") ?? true
            let bias = hasBias ? try importer.blobs(layer, atLeast: 2)[1].floats : nil
            let x = importer.assembler.flatten(inputs[0])
            var weight = blobs[0]
            // The weights are [inputs, outputs] if transposed. Old files may add leading axes of length 1.
            if p.bool("transpose") == true,
                let transposed = weight.reshaped(to: [x.shape.count, outputs])?.transposed(nil)
            {
                weight = transposed
            }
            return [
                try importer.assembler.dense(
                    x, weight: weight.floats, outputs: outputs, bias: bias, named: layer.name)
            ]
        },
        "Pooling": { layer, inputs, importer in [try importer.pool(layer, inputs[0])] },
        "BatchNorm": { layer, inputs, importer in
            let p = layer.properties.message("batch_norm_param")
            guard p.bool("use_global_stats") ?? true else {
                throw importer.unsupported(layer, "use_global_stats: false, expected running statistics")
            }
            let blobs = try importer.blobs(layer, atLeast: 3)
            let (mean, variance) = (blobs[0].floats, blobs[1].floats)
            // Caffe stores accumulated statistics and the factor by which to divide them.
            let sum = blobs[2].floats.first ?? 0
            let factor = sum == 0 ? 0 : 1 / sum
            return [
                try importer.assembler.normalize(
                    inputs[0], scale: mean.map { _ in 1 }, shift: mean.map { _ in 0 }, mean: mean.map { $0 * factor },
                    variance: variance.map { $0 * factor },
                    epsilon: p.float("eps") ?? 1e-5, named: layer.name)
            ]
        },
        "Scale": { layer, inputs, importer in
            let p = layer.properties.message("scale_param")
            guard inputs.count == 1, p.integer("axis") ?? 1 == 1, p.integer("num_axes") ?? 1 == 1 else {
                throw importer.unsupported(layer, "not one factor for each channel")
            }
            let hasShift = p.bool("bias_term") ?? false
            let blobs = try importer.blobs(layer, atLeast: hasShift ? 2 : 1)
            return [
                try importer.assembler.scale(
                    inputs[0], .channels, by: blobs[0].floats, adding: hasShift ? blobs[1].floats : nil,
                    named: layer.name)
            ]
        },
        "Bias": { layer, inputs, importer in
            let blobs = try importer.blobs(layer, atLeast: 1)
            return [
                try importer.assembler.scale(inputs[0], .channels, by: nil, adding: blobs[0].floats, named: layer.name)
            ]
        },
        "ReLU": { layer, inputs, importer in
            let slope = layer.properties.message("relu_param").float("negative_slope") ?? 0
            let added = slope == 0 ? ReLU() as any ImprintNetwork.Layer : LeakyReLU(slope: slope)
            return [try importer.assembler.add(added, named: layer.name, to: [inputs[0]])]
        },
        "PReLU": { layer, inputs, importer in
            let isShared = layer.properties.message("prelu_param").bool("channel_shared") ?? false
            return [
                try importer.assembler.add(
                    PReLU(isShared: isShared), named: layer.name, to: [inputs[0]],
                    parameters: ["slope": importer.blobs(layer, atLeast: 1)[0].floats])
            ]
        },
        "ELU": { layer, inputs, importer in
            let alpha = layer.properties.message("elu_param").float("alpha") ?? 1
            return [try importer.assembler.add(ELU(alpha: alpha), named: layer.name, to: [inputs[0]])]
        },
        "Sigmoid": { layer, inputs, importer in
            [try importer.assembler.add(Sigmoid(), named: layer.name, to: [inputs[0]])]
        },
        "TanH": { layer, inputs, importer in [try importer.assembler.add(Tanh(), named: layer.name, to: [inputs[0]])] },
        "Power": { layer, inputs, importer in
            let p = layer.properties.message("power_param")
            guard p.float("power") ?? 1 == 1 else { throw importer.unsupported(layer, "a power other than 1") }
            func all(_ value: Float?) throws(ImportError.Problem) -> [Float]? {
                guard let value else { return nil }
                return try importer.assembler.broadcast(
                    Constant(shape: [], floats: [value]), over: inputs[0], for: layer.name
                ).1
            }
            let (factors, addends) = (try all(p.float("scale") ?? 1), try all(p.float("shift")))
            return [
                try importer.assembler.scale(inputs[0], .channels, by: factors, adding: addends, named: layer.name)
            ]
        },
        "Clip": { layer, inputs, importer in
            let p = layer.properties.message("clip_param")
            return [
                try importer.assembler.clip(
                    inputs[0], from: p.float("min") ?? -.infinity, to: p.float("max") ?? .infinity, named: layer.name)
            ]
        },
        "Softmax": { layer, inputs, importer in
            [
                try importer.assembler.softmax(
                    inputs[0], along: layer.properties.message("softmax_param").integer("axis") ?? 1, named: layer.name)
            ]
        },
        "LRN": { layer, inputs, importer in
            let p = layer.properties.message("lrn_param")
            guard p.word("norm_region") ?? "ACROSS_CHANNELS" == "ACROSS_CHANNELS" else {
                throw importer.unsupported(layer, "WITHIN_CHANNEL, expected ACROSS_CHANNELS")
            }
            return [
                try importer.assembler.add(
                    LocalResponseNormalization(
                        size: p.integer("local_size") ?? 5, alpha: p.float("alpha") ?? 1, beta: p.float("beta") ?? 0.75,
                        bias: p.float("k") ?? 1), named: layer.name,
                    to: [importer.assembler.imageTensor(inputs[0], for: layer.name)])
            ]
        },
        "Eltwise": { layer, inputs, importer in [try importer.combine(layer, inputs)] },
        "Concat": { layer, inputs, importer in
            let p = layer.properties.message("concat_param")
            return [
                try importer.assembler.concatenate(
                    inputs, along: p.integer("axis") ?? p.integer("concat_dim") ?? 1, named: layer.name)
            ]
        },
        "Slice": { layer, inputs, importer in try importer.slice(layer, inputs[0]) },
        "Split": { layer, inputs, _ in layer.tops.map { _ in inputs[0] } },
        "Dropout": { _, inputs, _ in [inputs[0]] },
        "Flatten": { layer, inputs, importer in
            let p = layer.properties.message("flatten_param")
            guard p.integer("axis") ?? 1 == 1, p.integer("end_axis") ?? -1 == -1 else {
                throw importer.unsupported(layer, "some axes, expected all elements of an image")
            }
            return [importer.assembler.flatten(inputs[0])]
        },
        "Reshape": { layer, inputs, importer in
            let p = layer.properties.message("reshape_param")
            guard p.integer("axis") ?? 0 == 0, p.integer("num_axes") ?? -1 == -1 else {
                throw importer.unsupported(layer, "some axes, expected all")
            }
            let (dimensions, target) = (inputs[0].dimensions, p.message("shape").integers("dim"))
            guard let shape = resolved(target, of: dimensions) else {
                throw ImportError.Problem.malformed(
                    reason: "\(layer.name) (Reshape) reshapes \(dimensions) to \(target), expected as many elements")
            }
            let y = try importer.assembler.reshape(inputs[0], to: shape, named: layer.name)
            return [try importer.assembler.mergingChannelParts(of: y, named: layer.name)]
        },
    ]

    /// Returns a height and width, given as one value, as two values, or as separate fields.
    private static func pair(
        _ p: TextMessage, _ name: String, _ height: String, _ width: String, default value: Int
    ) -> Size2D {
        let both = p.integers(name)
        return Size2D(
            height: p.integer(height) ?? both.first ?? value, width: p.integer(width) ?? both.last ?? value)
    }

    private mutating func pool(_ layer: Layer, _ x: SourceActivation) throws -> SourceActivation {
        let p = layer.properties.message("pooling_param")
        let x = try assembler.imageTensor(x, for: layer.name)
        let isMax: Bool
        switch p.word("pool") ?? "MAX" {
        case "MAX", "0": isMax = true
        case "AVE", "1": isMax = false
        case let other: throw unsupported(layer, "pool \(other), expected MAX or AVE")
        }
        if p.bool("global_pooling") == true {
            let global: any ImprintNetwork.Layer = isMax ? GlobalMaxPool() : GlobalAveragePool()
            return try assembler.add(global, named: layer.name, to: [x])
        }
        let kernel = Self.pair(p, "kernel_size", "kernel_h", "kernel_w", default: 0)
        let stride = Self.pair(p, "stride", "stride_h", "stride_w", default: 1)
        let amounts = Self.pair(p, "pad", "pad_h", "pad_w", default: 0)
        let padding = Padding.explicit(
            top: amounts.height, left: amounts.width, bottom: amounts.height, right: amounts.width)
        let roundsUp = !["FLOOR", "1"].contains(p.word("round_mode") ?? "CEIL")
        // A window over the whole image is a global mean for any image size.
        if !isMax, kernel == Size2D(height: x.shape.height, width: x.shape.width), padding.isNone {
            return try assembler.add(GlobalAveragePool(), named: layer.name, to: [x])
        }
        let added: any ImprintNetwork.Layer =
            isMax
            ? MaxPool(kernelSize: kernel, stride: stride, padding: padding, roundsUp: roundsUp)
            : AveragePool(
                kernelSize: kernel, stride: stride, padding: padding, countsPadding: true, roundsUp: roundsUp)
        return try assembler.add(added, named: layer.name, to: [x])
    }

    private mutating func combine(_ layer: Layer, _ inputs: [SourceActivation]) throws -> SourceActivation {
        let p = layer.properties.message("eltwise_param")
        switch p.word("operation") ?? "SUM" {
        case "SUM", "1":
            let factors = p.floats("coeff")
            guard factors.isEmpty || factors.count == inputs.count else {
                throw ImportError.Problem.malformed(
                    reason: "\(layer.name) (Eltwise) has \(factors.count) coefficients for \(inputs.count) inputs")
            }
            var terms = inputs
            for (index, factor) in factors.enumerated() where index < terms.count && factor != 1 {
                terms[index] = try assembler.multiply(
                    terms[index], by: Constant(shape: [], floats: [factor]), named: "\(layer.name).\(index)")
            }
            return try assembler.add(terms, named: layer.name)
        case "PROD", "0": return try assembler.multiply(inputs, named: layer.name)
        case "MAX", "2": return try assembler.maximum(inputs, named: layer.name)
        case let other: throw unsupported(layer, "operation \(other)")
        }
    }

    private mutating func slice(_ layer: Layer, _ x: SourceActivation) throws -> [SourceActivation] {
        let p = layer.properties.message("slice_param")
        let (points, count) = (p.integers("slice_point"), layer.tops.count)
        return try assembler.split(
            x, along: p.integer("axis") ?? p.integer("slice_dim") ?? 1, as: layer.tops.map { "\(layer.name).\($0)" },
            named: layer.name
        ) { length in
            let starts = points.isEmpty ? (1..<count).map { $0 * (length / count) } : points
            // The points are any 64-bit integers; only lengths from 1 to `length` are valid.
            return zip([0] + starts, starts + [length]).map { $1 &- $0 }
        }
    }
}
