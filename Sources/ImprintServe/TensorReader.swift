internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintImages

/// Reads the images of an input tensor.
struct TensorReader {
    private let input: InferenceMessage.Input
    private let kind: ModelInterface.Input
    private let interface: ModelInterface
    /// The number of elements.
    private let count: Int

    /// Checks the datatype and the shape of an input.
    init(
        _ input: InferenceMessage.Input, _ kind: ModelInterface.Input, _ interface: ModelInterface,
        maximumImageCount: Int
    ) throws(HTTPError) {
        (self.input, self.kind, self.interface) = (input, kind, interface)
        let datatype = interface.datatype(of: kind)
        guard input.datatype == datatype.rawValue else {
            throw HTTPError(
                .badRequest,
                "the datatype of \(kind.rawValue) is \(String(input.datatype.prefix(20)).debugDescription), expected \(datatype.rawValue)"
            )
        }
        let isValid =
            switch kind {
            // Clients of other servers send pictures as [batch, 1].
            case .image: input.shape.count == 1 || input.shape.count == 2 && input.shape[1] == 1
            case .pixels: input.shape.count == 4 && [1, 3, 4].contains(input.shape[3])
            case .values:
                input.shape.count == 4 && input.shape.dropFirst() == interface.shape(of: .values).dropFirst()
            }
        var product: Int? = 1
        for length in input.shape {
            product = product.flatMap {
                let (value, overflow) = $0.multipliedReportingOverflow(by: length)
                return overflow || length < 1 ? nil : value
            }
        }
        guard isValid, let product, product <= Self.maximumElementCount else {
            let expected =
                kind == .pixels
                ? "N, height, width, 1, 3 or 4"
                : interface.shape(of: kind).map { $0 < 0 ? "N" : "\($0)" }.joined(separator: ", ")
            throw HTTPError(
                .badRequest, "the shape of \(kind.rawValue) is \(Array(input.shape.prefix(6))), expected [\(expected)]")
        }
        // Before the data is split, because each image needs memory of its own.
        guard input.shape[0] <= maximumImageCount else {
            throw .tooManyImages(input.shape[0], limit: maximumImageCount)
        }
        count = product
    }

    /// The maximum number of elements, so that byte counts cannot overflow.
    private static let maximumElementCount = 1 << 40

    /// Returns the images of the tensor.
    /// - Parameter binary: The binary data of the tensor, which follows the JSON text.
    func images(binary: Data) throws(HTTPError) -> [BatchInput] {
        if let byteCount = input.parameters?.binaryDataByteCount {
            guard byteCount == binary.count, input.data == nil else {
                throw HTTPError(
                    .badRequest,
                    "binary_data_size of \(kind.rawValue) is \(byteCount), expected \(binary.count), the number of bytes after the JSON, "
                        + "and no field data")
            }
            return try images(of: binary)
        }
        guard binary.isEmpty, let data = input.data else {
            throw HTTPError(
                .badRequest,
                "the input \(kind.rawValue) has no data, expected the field data, or binary_data_size and "
                    + "the field \(InferenceRequest.jsonLengthField) of the head")
        }
        switch (kind, data) {
        case (.image, .strings(let texts)): return try pictures(texts)
        case (.pixels, .numbers(let numbers)): return try images(of: Data(try samples(numbers)))
        case (.values, .numbers(let numbers)):
            let values = numbers.map { Float($0) }
            return try images(of: values.withUnsafeBytes { Data($0) })
        case (.image, _): throw HTTPError(.badRequest, "the data of image has numbers, expected pictures in Base64")
        case (_, _): throw HTTPError(.badRequest, "the data of \(kind.rawValue) has strings, expected numbers")
        }
    }

    private func pictures(_ texts: [String]) throws(HTTPError) -> [BatchInput] {
        try checkCount(texts.count)
        var pictures: [BatchInput] = []
        for (index, text) in texts.enumerated() {
            guard let picture = Data(base64Encoded: text) else {
                throw HTTPError(.badRequest, "element \(index) of image is not Base64")
            }
            pictures.append(.image(.data(picture)))
        }
        return pictures
    }

    private func samples(_ numbers: [Double]) throws(HTTPError) -> [UInt8] {
        var samples: [UInt8] = []
        samples.reserveCapacity(numbers.count)
        for number in numbers {
            guard let sample = UInt8(exactly: number) else {
                throw HTTPError(.badRequest, "the data of pixels has the number \(number), expected 0 to 255")
            }
            samples.append(sample)
        }
        return samples
    }

    private func checkCount(_ found: Int) throws(HTTPError) {
        guard found == count else {
            throw HTTPError(
                .badRequest,
                "the input \(kind.rawValue) has \(counted(found, "element")), expected \(count) for the shape \(input.shape)"
            )
        }
    }

    /// Returns the images of the binary data of the tensor.
    private func images(of bytes: Data) throws(HTTPError) -> [BatchInput] {
        switch kind {
        case .image: return try pictures(binary: bytes)
        case .pixels:
            try checkCount(bytes.count)
            let (height, width, channels) = (input.shape[1], input.shape[2], input.shape[3])
            return parts(of: bytes).map { part in
                .image(.image(RasterImage(width: width, height: height, channels: channels, samples: [UInt8](part))))
            }
        case .values:
            let (elementCount, rest) = bytes.count.quotientAndRemainder(dividingBy: MemoryLayout<Float>.stride)
            guard rest == 0 else {
                throw HTTPError(
                    .badRequest, "the input values has \(counted(bytes.count, "byte")), expected a multiple of 4")
            }
            try checkCount(elementCount)
            return parts(of: bytes).map { .values($0) }
        }
    }

    /// Splits the data of a batch into those of its images.
    private func parts(of bytes: Data) -> [Data] {
        let size = bytes.count / input.shape[0]
        return (0..<input.shape[0]).map { bytes.dropFirst($0 * size).prefix(size) }
    }

    /// Returns pictures that each follow their length, a 32-bit number in little-endian order.
    private func pictures(binary bytes: Data) throws(HTTPError) -> [BatchInput] {
        var pictures: [BatchInput] = []
        var rest = bytes
        while !rest.isEmpty {
            guard rest.count >= 4 else {
                throw HTTPError(
                    .badRequest,
                    "the length of element \(pictures.count) of image is truncated: found \(counted(rest.count, "byte")), expected 4"
                )
            }
            let length = rest.prefix(4).reversed().reduce(0) { $0 << 8 | Int($1) }
            guard length <= rest.count - 4 else {
                throw HTTPError(
                    .badRequest,
                    "element \(pictures.count) of image has \(counted(rest.count - 4, "byte")), expected \(length)")
            }
            pictures.append(.image(.data(rest.dropFirst(4).prefix(length))))
            rest = rest.dropFirst(4 + length)
            guard pictures.count <= count else { break }
        }
        try checkCount(pictures.count)
        return pictures
    }
}
