import Foundation
import ImprintImages
import ImprintNetwork

@testable import ImprintCore
@testable import ImprintInterop
@testable import ImprintModel

/// A field of a protobuf message in a test file.
enum WireField: Sendable {
    case integer(Int, Int)
    case float(Int, Float)
    case text(Int, String)
    case bytes(Int, [UInt8])
    case message(Int, [WireField])
    case integers(Int, [Int])
    case floats(Int, [Float])
    case doubles(Int, [Double])

    /// Encodes the fields in order.
    static func encode(_ fields: [WireField]) -> [UInt8] {
        fields.reduce(into: []) { $1.write(to: &$0) }
    }

    private func write(to bytes: inout [UInt8]) {
        func packed(_ number: Int, _ content: [UInt8]) {
            Self.varint(number << 3 | 2, to: &bytes)
            Self.varint(content.count, to: &bytes)
            bytes += content
        }
        func little(_ number: some FixedWidthInteger) -> [UInt8] {
            withUnsafeBytes(of: number.littleEndian) { Array($0) }
        }
        switch self {
        case .integer(let number, let value):
            Self.varint(number << 3, to: &bytes)
            Self.varint(value, to: &bytes)
        case .float(let number, let value):
            Self.varint(number << 3 | 5, to: &bytes)
            bytes += little(value.bitPattern)
        case .text(let number, let text): packed(number, Array(text.utf8))
        case .bytes(let number, let content): packed(number, content)
        case .message(let number, let fields): packed(number, Self.encode(fields))
        case .integers(let number, let values):
            packed(number, values.reduce(into: []) { Self.varint($1, to: &$0) })
        case .floats(let number, let values): packed(number, values.flatMap { little($0.bitPattern) })
        case .doubles(let number, let values): packed(number, values.flatMap { little($0.bitPattern) })
        }
    }

    private static func varint(_ value: Int, to bytes: inout [UInt8]) {
        var rest = UInt64(bitPattern: Int64(value))
        while rest >= 0x80 {
            bytes.append(UInt8(rest & 0x7F) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(rest))
    }
}

/// A Core ML file with one neural network.
struct CoreMLSample {
    /// The name of the image.
    var input = "image"
    let width: Int
    let height: Int
    /// The color space of the image: 10 is grey, 20 RGB, 30 BGR.
    let colors: Int
    var layers: [WireField] = []
    var preprocessing: [WireField] = []
    var labels: [WireField] = []
    /// Whether the image has four axes, instead of five with a sequence axis.
    var isExact = false
    var kind = 403

    init(width: Int = 3, height: Int = 3, colors: Int = 10) {
        (self.width, self.height, self.colors) = (width, height, colors)
    }

    /// Adds a layer; by default it reads the previous layer, and its output has its name.
    mutating func add(
        _ name: String, _ kind: Int, _ settings: [WireField] = [], from inputs: [String]? = nil,
        to outputs: [String]? = nil
    ) {
        let inputs = inputs ?? [last]
        layers.append(
            .message(
                1,
                [.text(1, name)] + inputs.map { .text(2, $0) } + (outputs ?? [name]).map { .text(3, $0) }
                    + [.message(kind, settings)]))
        last = outputs?.last ?? name
    }
    private var last = "image"

    var image: WireField {
        .message(
            1,
            [
                .text(1, input),
                .message(3, [.message(4, [.integer(1, width), .integer(2, height), .integer(3, colors)])]),
            ])
    }

    var network: [WireField] {
        let mapping: [WireField] = isExact ? [.integer(5, 1), .integer(6, 1)] : []
        return layers + preprocessing + mapping + labels
    }

    var bytes: [UInt8] {
        WireField.encode([.integer(1, 4), .message(2, [image]), .message(kind, network)])
    }

    /// Imports the model.
    func read(_ change: (inout ModelImporter) -> Void = { _ in }) throws -> ImportedModel {
        try importCoreML(bytes, change)
    }
}

extension WireField {
    /// Returns a field with 32-bit weights.
    static func weights(_ number: Int, _ values: [Float]) -> WireField { .message(number, [.floats(1, values)]) }
}

/// Imports a Core ML model in memory through a temporary file.
func importCoreML(_ bytes: [UInt8], _ change: (inout ModelImporter) -> Void = { _ in }) throws -> ImportedModel {
    try importModel(bytes, ending: "mlmodel", change)
}

/// Imports a model in memory through a temporary file.
func importModel(
    _ bytes: [UInt8], ending: String, _ change: (inout ModelImporter) -> Void = { _ in }
) throws -> ImportedModel {
    let url = FileManager.default.temporaryDirectory.appending(path: "imprint-\(UUID().uuidString).\(ending)")
    try Data(bytes).write(to: url)
    defer { try? FileManager.default.removeItem(at: url) }
    var importer = ModelImporter()
    change(&importer)
    return try importer.read(url)
}

extension ModelFile {
    /// Returns the output of the network for one image with samples [height, width, channels].
    func result(_ samples: [UInt8]) throws -> [Float] {
        let plan = try ExecutionPlan(
            network, parameters: parameters, options: ExecutionPlan.Options(batchSize: 1, mode: .prediction))
        let image = RasterImage(
            width: preprocessing.width, height: preprocessing.height, channels: preprocessing.channels, samples: samples
        )
        preprocessing.normalize(image, into: plan.input)
        plan.forward(count: 1)
        return Array(plan.output.prefix(labels.count))
    }
}

/// Returns the softmax of logits.
func softmax(_ logits: [Float]) -> [Float] {
    let powers = logits.map { exp(Double($0) - Double(logits.max() ?? 0)) }
    return powers.map { Float($0 / powers.reduce(0, +)) }
}

/// Returns the largest absolute difference of two arrays; infinity if their lengths differ.
func maximumDifference(_ x: [Float], _ y: [Float]) -> Float {
    x.count == y.count ? zip(x, y).map { abs($0 - $1) }.max() ?? 0 : .infinity
}
