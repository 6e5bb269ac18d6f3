import Foundation
import ImprintNetwork
import TestSupport
import Testing

@testable import ImprintCore
@testable import ImprintInterop
@testable import ImprintModel

/// Valid safetensors files that are not valid model files.
@Suite struct HostileModelFileTests {
    private static let keys = [
        "imprint.network", "imprint.labels", "imprint.preprocessing", "imprint.training", "imprint.digest",
    ]

    @Test(
        "Another format is rejected with its version",
        arguments: [
            (nil, .foreign, "not an Imprint model"),
            (
                "6", .newerFormat(found: 6),
                "was written by a newer Imprint (format 6); this one reads up to 5. Update Imprint"
            ),
            ("999", .newerFormat(found: 999), "Update Imprint"),
            ("0", .unknownFormat(found: "0"), "which does not exist"),
            ("-1", .unknownFormat(found: "-1"), "which does not exist"),
            ("one", .unknownFormat(found: "one"), "which does not exist"),
            ("99999999999999999999", .unknownFormat(found: "99999999999999999999"), "which does not exist"),
        ] as [(String?, ModelFileError.Problem, String)])
    func formats(format: String?, problem: ModelFileError.Problem, text: String) throws {
        let error = try error(metadata: ["imprint.format": format])
        #expect(error?.problem == problem)
        #expect(error?.description.contains(text) == true)
    }

    @Test(
        "A finding does not contain the fix, which follows it in the description",
        arguments: [
            (.newerFormat(found: 9), "Update Imprint."), (.checkpoint, "Resume the run to get a model."),
            (.notFinite(tensor: "head.bias"), "Train again with a lower learning rate."),
            (.damaged(found: "a", expected: "b"), "Get the file again from its source."),
        ] as [(ModelFileError.Problem, String)])
    func findings(problem: ModelFileError.Problem, fix: String) {
        let error = ModelFileError(path: "m.imprint", problem: problem)
        #expect(error.description == "\(error.finding) \(fix)" && !error.finding.contains(fix))
    }

    @Test("The error about missing tensors lists them in one line, before the fix") func missingTensors() throws {
        let network = try Network.logonet(labels: 3, inputSize: 16, width: 0.1)
        let report = try Parameters(network, seed: 9).load(from: sampleModel().parameters)
        let error = ModelFileError(path: "m.imprint", problem: .incomplete(report))
        #expect(error.finding.contains("tensors loaded; with another shape: head.weight"))
        #expect(error.description == "\(error.finding) Get the file again from its source.")
    }

    @Test("A missing metadata key is rejected by name, except the training record", arguments: keys)
    func missing(key: String) throws {
        if key == "imprint.training" {
            try withChanged(sampleModel(), metadata: [key: nil]) { url in
                let model = try ModelFile(contentsOf: url)
                #expect(model.training == nil)
            }
        } else {
            #expect(try error(metadata: [key: nil])?.problem == .missingMetadata(key: key))
        }
    }

    /// An invalid metadata value, which test names show by its first characters.
    struct NotJSON: CustomTestStringConvertible {
        let text: String
        var testDescription: String { "\(text.prefix(16)), \(text.count) characters" }

        init(_ text: String) { self.text = text }
    }

    @Test(
        "Metadata that is not valid JSON of its type is rejected by its key", arguments: keys.dropLast(),
        [
            NotJSON(""), NotJSON("{"), NotJSON("null"), NotJSON("7"), NotJSON("\"text\""), NotJSON("[[]]"),
            NotJSON("{\"unknown\":1}"), NotJSON(String(repeating: "[", count: 100_000)),
            NotJSON("\"]]]]]]]]]]\"" + String(repeating: "{\"a\":", count: 100_000)),
        ])
    func notJSON(key: String, value: NotJSON) throws {
        let error = try error(metadata: [key: value.text])
        guard case .invalidMetadata(let found, let reason) = error?.problem else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(found == key)
        #expect(!reason.isEmpty)
    }

    /// A training record with an impossible value, and a part of the error.
    struct InvalidRecord: CustomTestStringConvertible {
        let text: String
        let record: TrainingRecord
        var testDescription: String { text }

        init(_ text: String, _ change: (inout TrainingRecord) -> Void) {
            var record = TrainingRecord(.classifier(ClassifierHyperparameters()))
            change(&record)
            (self.text, self.record) = (text, record)
        }
    }

    @Test(
        "A training record with impossible counts, metrics or thresholds is rejected",
        arguments: [
            InvalidRecord("trainingImages has the count 9223372036854775807") {
                $0.trainingImages = ["a": .max, "b": 1]
            },
            InvalidRecord("validationImages has the count -1") { $0.validationImages = ["a": -1] },
            InvalidRecord("found the accuracy 2, expected 0 to 1") { $0.startAccuracy = 2 },
            InvalidRecord("found the accuracy 1e+30") {
                $0.history = [EpochMetrics(epoch: 1, loss: 1, accuracy: 1e30, learningRate: 1)]
            },
            InvalidRecord("the threshold of \"a\" is 5, expected 0 to 1") { $0.thresholds = ["a": 5, "b": 0.5] },
            InvalidRecord("the threshold of \"b\" is nan") { $0.thresholds = ["a": 1, "b": .nan] },
            InvalidRecord("the point (0.5, -1, 1)") {
                $0.precisionRecall = ["a": [.init(threshold: 0.5, precision: -1, recall: 1)]]
            },
            InvalidRecord("the point (inf, 1, 1)") {
                $0.precisionRecall = ["a": [.init(threshold: .infinity, precision: 1, recall: 1)]]
            },
            InvalidRecord("the temperature of the calibration is -1") {
                $0.calibration = Calibration(temperature: -1, errorBefore: 0, errorAfter: 0, images: 1)
            },
            InvalidRecord("the temperature of the calibration is nan") {
                $0.calibration = Calibration(temperature: .nan, errorBefore: 0, errorAfter: 0, images: 1)
            },
        ])
    func invalidTraining(_ invalid: InvalidRecord) throws {
        let description = try error(metadata: ["imprint.training": json(invalid.record)])?.description
        #expect(description?.contains(invalid.text) == true, "\(description ?? "no error")")
        try withTemporaryFolder { folder in
            let sample = try sampleModel()
            let model = ModelFile(
                network: sample.network, parameters: sample.parameters, labels: sample.labels,
                preprocessing: sample.preprocessing, training: invalid.record)
            let file = folder.appending(path: "m.imprint")
            // A file that cannot be read again must not be written.
            #expect(throws: ModelFileError.self) { try model.write(to: file) }
            #expect(!FileManager.default.fileExists(atPath: file.path))
        }
    }

    @Test(
        "An invalid network is rejected with its reason",
        arguments: [
            ("\"kernelSize\":{\"height\":3,", "\"kernelSize\":{\"height\":0,", "kernelSize is 0x3"),
            ("\"kernelSize\":{\"height\":3,", "\"kernelSize\":{\"height\":-1,", "kernelSize is -1x3"),
            ("\"kernelSize\":{\"height\":3,", "\"kernelSize\":{\"height\":4611686018427387904,", "at most 32768x32768"),
            ("\"kernelSize\":{\"height\":3,", "\"kernelSize\":{\"height\":9223372036854775808,", "imprint.network"),
            ("\"kernelSize\":{\"height\":3,", "\"kernelSize\":{\"height\":3.5,", "imprint.network"),
            ("\"kernelSize\":{\"height\":3,", "\"kernelSize\":{\"width\":3,", "imprint.network"),
            ("\"outputChannels\":2}", "\"outputChannels\":4611686018427387904}", "at most 2147483647 values"),
            ("\"outputChannels\":3,", "\"outputChannels\":9223372036854775807,", "at most 2147483647 values"),
            ("\"height\":16", "\"height\":9223372036854775807", "at most 2147483647 values"),
            ("\"channels\":3", "\"channels\":4611686018427387904", "at most 2147483647 values"),
            ("\"kind\":\"dense\"", "\"kind\":\"dance\"", "unknown layer kind \"dance\""),
            ("\"inputs\":[\"input\"]", "\"inputs\":[\"undefined\"]", "but no earlier node has this name"),
            ("\"inputs\":[\"input\"]", "\"inputs\":[]", "found 0 inputs"),
        ])
    func invalidNetwork(part: String, replacement: String, text: String) throws {
        let network = try json(sampleModel().network)
        try #require(network.contains(part))
        let changed = network.replacing(part, with: replacement)
        #expect(try error(metadata: ["imprint.network": changed])?.description.contains(text) == true)
    }

    @Test("The number of labels must equal the number of outputs, and labels must be unique")
    func labels() throws {
        #expect(try error(metadata: ["imprint.labels": "[]"])?.problem == .labelCount(found: 0, outputs: 2))
        #expect(try error(metadata: ["imprint.labels": "[\"a\"]"])?.problem == .labelCount(found: 1, outputs: 2))
        #expect(try error(metadata: ["imprint.labels": "[\"a\",\"a\"]"])?.problem == .duplicateLabel("a"))
    }

    /// A network that decodes must have a valid parameter layout, because using it would crash otherwise.
    @Test("A network with one changed number is rejected or still valid", arguments: ["logonet", "lenet"])
    func anyNumber(name: String) throws {
        let text = try json(Network.named(name, labels: 2, inputSize: 32, width: 0.05))
        var (validCount, rejectedCount) = (0, 0)
        for number in text.matches(of: /-?[0-9.]+(?=[,}])/) {
            for replacement in ["-1", "0", "65536", "2147483648", "4611686018427387904", "9223372036854775807", "1e30"]
            {
                let changed = text.replacingCharacters(in: number.range, with: replacement)
                guard let network: Network = try? value("network", in: ["network": changed]) else {
                    rejectedCount += 1
                    continue
                }
                #expect(ParameterLayout(network).count >= 0)
                validCount += 1
            }
        }
        #expect(validCount > 0 && rejectedCount > 0)
    }

    @Test(
        "Invalid preprocessing is rejected with its reason",
        arguments: [
            ("\"width\":16", "\"width\":0", "the size 0x16"),
            ("\"width\":16", "\"width\":4611686018427387904", "expected 1x1 to 16384x16384"),
            ("\"width\":16", "\"width\":32", "preprocesses images to 16x32x3, but its network takes 16x16x3"),
            ("\"mean\":[", "\"mean\":[1,", "4 means and 3 scales"),
            ("\"mean\":[", "\"mean\":[\"NaN\",", "4 means and 3 scales"),
            ("\"scale-fit\"", "\"scale-fill-fit\"", "imprint.preprocessing"),
            ("\"sRGB\"", "\"CMYK\"", "the colour space \"CMYK\""),
        ])
    func invalidPreprocessing(part: String, replacement: String, text: String) throws {
        let preprocessing = try json(sampleModel().preprocessing)
        try #require(preprocessing.contains(part))
        let changed = preprocessing.replacing(part, with: replacement)
        #expect(try error(metadata: ["imprint.preprocessing": changed])?.description.contains(text) == true)
    }

    @Test("A network that is not a classifier is rejected")
    func notAClassifier() throws {
        var builder = NetworkBuilder(name: "image", input: TensorShape(height: 4, width: 4, channels: 1))
        builder.add(ReLU())
        let network = try json(builder.network())
        let error = try error(metadata: ["imprint.network": network])
        #expect(error?.description.contains("one score per label") == true)
    }

    @Test("Missing, unexpected and mismatched tensors are listed")
    func otherTensors() throws {
        let error = try error { tensors in
            tensors.removeAll { $0.name == "head.bias" }
            tensors.append(.init(name: "extra", shape: [1], values: [0]))
            if let index = tensors.firstIndex(where: { $0.name == "head.weight" }) {
                let weight = tensors[index]
                tensors[index] = .init(name: weight.name, shape: weight.shape.reversed(), values: weight.values)
            }
        }
        guard case .incomplete(let report) = error?.problem else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(report.missing == ["head.bias"])
        #expect(report.unused == ["extra"])
        #expect(report.mismatched.map(\.name) == ["head.weight"])
        #expect(error?.description.contains("missing in the file: head.bias") == true)
    }

    @Test("A tensor with a value that is not finite is rejected by name", arguments: [Float.nan, .infinity])
    func notFinite(value: Float) throws {
        let error = try error { tensors in
            tensors.removeAll { $0.name == "head.bias" }
            tensors.append(.init(name: "head.bias", shape: [2], values: [0, value]))
        }
        #expect(error?.problem == .notFinite(tensor: "head.bias"))
    }

    @Test("A flipped bit in the tensors is detected")
    func flippedBit() throws {
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "model.imprint")
            try sampleModel().write(to: url)
            let whole = try Data(contentsOf: url)
            let dataLength = try Safetensors.File(contentsOf: url).header.tensors.last?.byteRange.upperBound
            let dataStart = whole.count - (try #require(dataLength))
            let offsets = stride(from: dataStart, to: whole.count, by: (whole.count - dataStart) / 40)
            for offset in offsets + [whole.count - 1] {
                var changed = whole
                changed[offset] ^= 1 << (offset % 8)
                try changed.write(to: url)
                let error = #expect(throws: ModelFileError.self) { try ModelFile(contentsOf: url) }
                #expect(error?.description.contains("is damaged: its digest is") == true)
            }
        }
    }

    @Test("A truncated file is rejected")
    func truncated() throws {
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "model.imprint")
            try sampleModel().write(to: url)
            let whole = try Data(contentsOf: url)
            for length in stride(from: 0, to: whole.count, by: 61) {
                try whole.prefix(length).write(to: url)
                #expect(throws: SafetensorsError.self) { try ModelFile(contentsOf: url) }
            }
        }
    }

    /// Returns the error of the sample file after replacing metadata (nil removes an entry) and changing tensors.
    private func error(
        metadata changes: [String: String?] = [:], tensors change: (inout [Safetensors.Tensor]) -> Void = { _ in }
    ) throws -> ModelFileError? {
        try withChanged(sampleModel(), metadata: changes, tensors: change) { url in
            #expect(throws: ModelFileError.self) { try ModelFile(contentsOf: url) }
        }
    }
}

/// Calls `body` with the file of a model after replacing metadata (nil removes an entry) and changing tensors.
func withChanged<Result>(
    _ model: ModelFile, metadata changes: [String: String?],
    tensors change: (inout [Safetensors.Tensor]) -> Void = { _ in }, _ body: (URL) throws -> Result
) throws -> Result {
    try withTemporaryFolder { folder in
        let url = folder.appending(path: "model.imprint")
        try model.write(to: url)
        let file = try Safetensors.File(contentsOf: url)
        var tensors = try file.header.tensors.map {
            Safetensors.Tensor(name: $0.name, shape: $0.shape, values: try file.values(of: $0))
        }
        change(&tensors)
        try Safetensors.write(tensors, to: url) { digest in
            var metadata = file.header.metadata
            metadata["imprint.digest"] = digest
            for (key, value) in changes { metadata[key] = value }
            return metadata
        }
        return try body(url)
    }
}
