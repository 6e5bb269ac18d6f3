internal import ImprintModel
internal import ImprintNetwork

/// The element-wise layers.
extension CoreMLGraph {
    mutating func activate(_ layer: CoreMLModel.Layer, _ record: CoreMLRecord) throws -> SourceActivation {
        let x = try activation(layer)
        func settings(_ number: Int) throws -> CoreMLRecord? { try record.record(number) }
        if let linear = try settings(5) {
            return try assembler.linear(x, linear.float(1), linear.float(2), named: layer.name)
        } else if record.has(10) {
            return try assembler.add(ReLU(), named: layer.name, to: [x])
        } else if let leaky = try settings(15) {
            return try assembler.add(LeakyReLU(slope: leaky.float(1)), named: layer.name, to: [x])
        } else if let threshold = try settings(20), try threshold.float(1) == 0 {
            return try assembler.add(ReLU(), named: layer.name, to: [x])
        } else if let trained = try settings(25) {
            return try slopes(x, layer, trained)
        } else if record.has(30) {
            return try assembler.add(Tanh(), named: layer.name, to: [x])
        } else if let scaled = try settings(31) {
            let inner = try assembler.linear(x, scaled.float(2), 0, named: "\(layer.name).inner")
            let tanh = try assembler.add(Tanh(), named: layer.name, to: [inner])
            return try assembler.linear(tanh, scaled.float(1), 0, named: "\(layer.name).outer")
        } else if record.has(40) {
            return try assembler.add(Sigmoid(), named: layer.name, to: [x])
        } else if let hard = try settings(41) {
            return try assembler.add(
                HardSigmoid(slope: hard.float(1), offset: hard.float(2)), named: layer.name, to: [x])
        } else if let exponential = try settings(50) {
            return try assembler.add(ELU(alpha: exponential.float(1)), named: layer.name, to: [x])
        } else if record.has(70) {
            return try assembler.add(Softplus(), named: layer.name, to: [x])
        }
        let names = [20: "a threshold that is not 0", 60: "softsign", 71: "a parametric softplus"]
        throw unsupported(layer, names.first { record.has($0.key) }?.value ?? "of an unknown type")
    }

    private mutating func slopes(
        _ x: SourceActivation, _ layer: CoreMLModel.Layer, _ record: CoreMLRecord
    ) throws -> SourceActivation {
        let x = try withChannels(x, layer)
        guard x.axes.contains(.channels), let message = try record.message(1) else {
            throw unsupported(layer, "of \(x.axisNames), expected channels with one slope each")
        }
        let weights = CoreMLWeights(message, of: layer.name)
        // All channels may share one slope.
        if x.shape.channels > 1, let slope = try? weights.floats(1) {
            return try assembler.add(PReLU(isShared: true), named: layer.name, to: [x], parameters: ["slope": slope])
        }
        return try assembler.add(
            PReLU(), named: layer.name, to: [x], parameters: ["slope": weights.floats(x.shape.channels)])
    }

    /// Converts a function of scale · x + shift.
    mutating func compute(_ layer: CoreMLModel.Layer, _ record: CoreMLRecord) throws -> SourceActivation {
        let scale = try record.float(5)
        let kind = try record.integer(1)
        let alpha = try record.float(2)
        guard kind == 7 || (kind == 3 && alpha == 1) else {
            let names = ["sqrt", "rsqrt", "inverse", "power", "exp", "log", "abs", "threshold"]
            throw unsupported(layer, names.indices.contains(kind) ? names[kind] : "type \(kind)")
        }
        let x = try assembler.linear(
            activation(layer), scale == 0 ? 1 : scale, record.float(4),
            named: kind == 3 ? layer.name : "\(layer.name).linear")
        guard kind == 7 else { return x }
        return try assembler.threshold(x, atLeast: alpha, named: layer.name)
    }

    mutating func clip(_ layer: CoreMLModel.Layer, _ record: CoreMLRecord) throws -> SourceActivation {
        try assembler.clip(
            activation(layer), from: record.float(1), to: record.float(2), named: layer.name)
    }

    /// Converts min(β, x ≥ 0 ? x : α · x).
    mutating func clampedReLU(_ layer: CoreMLModel.Layer, _ record: CoreMLRecord) throws -> SourceActivation {
        try assembler.clampedReLU(
            activation(layer), slope: record.float(1), atMost: record.float(2), named: layer.name)
    }
}

extension NetworkAssembler {
    /// Computes scale · x + shift; adds no layer if that is the identity, or if it reverts the preceding layer.
    mutating func linear(
        _ x: SourceActivation, _ scale: Float, _ shift: Float, named name: String
    ) throws -> SourceActivation {
        if scale == 1, shift == 0 { return x }
        if shift == 0, let earlier = factor(of: x), earlier * scale == 1, let source = inputs(of: x).first {
            return source
        }
        func channels(_ number: Float) -> [Float] { Array(repeating: number, count: x.shape.channels) }
        return try self.scale(
            x, .channels, by: scale == 1 ? nil : channels(scale), adding: shift == 0 ? nil : channels(shift),
            named: name)
    }

    /// Returns the scalar factor of a preceding affine layer without a shift.
    private func factor(of x: SourceActivation) -> Float? {
        guard let affine = layer(of: x, as: Affine.self), affine.extent == .channels, !affine.hasShift,
            let factors = parameters(of: x)["scale"], let first = factors.first, factors.allSatisfy({ $0 == first })
        else { return nil }
        return first
    }

    /// Computes max(x, minimum).
    ///
    /// Converters express an upper limit as a threshold after a factor of −1. It becomes an upper limit before that factor.
    mutating func threshold(
        _ x: SourceActivation, atLeast minimum: Float, named name: String
    ) throws -> SourceActivation {
        guard factor(of: x) == -1, let source = inputs(of: x).first else {
            return try clip(x, from: minimum, to: .infinity, named: name)
        }
        let limited: SourceActivation
        if layer(of: source, as: ReLU.self) != nil, minimum < 0, let origin = inputs(of: source).first {
            limited = try clip(origin, from: 0, to: -minimum, named: name)
        } else {
            limited = try clip(source, from: -.infinity, to: -minimum, named: name)
        }
        return try linear(limited, -1, 0, named: "\(name).minus")
    }

    /// Computes min(maximum, x ≥ 0 ? x : slope · x).
    mutating func clampedReLU(
        _ x: SourceActivation, slope: Float, atMost maximum: Float, named name: String
    ) throws -> SourceActivation {
        if slope == 0 { return try clip(x, from: 0, to: maximum, named: name) }
        let leaky = slope == 1 ? x : try add(LeakyReLU(slope: slope), named: "\(name).leaky", to: [x])
        return try clip(leaky, from: -.infinity, to: maximum, named: name)
    }
}
