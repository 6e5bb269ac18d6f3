import Foundation
import ImprintNetwork
import TestSupport
import Testing

@testable import ImprintCore
@testable import ImprintInterop
@testable import ImprintModel

@Suite struct LoadingReportTests {
    @Test("A network for other labels loads all tensors except the head, and the report lists the head")
    func transfer() throws {
        let base = try sampleModel().parameters
        let network = try Network.logonet(labels: 3, inputSize: 16, width: 0.1)
        let parameters = try Parameters(network, seed: 9)
        let report = parameters.load(from: base)
        #expect(!report.isComplete)
        #expect(report.applied == parameters.layout.entries.map(\.name).filter { !$0.hasPrefix("head") })
        #expect(report.missing.isEmpty && report.unused.isEmpty)
        let channels = try #require(base.layout["head.weight"]).parameter.shape[0]
        #expect(
            report.mismatched == [
                .init(name: "head.weight", found: [channels, 2], expected: [channels, 3]),
                .init(name: "head.bias", found: [2], expected: [3]),
            ])
        let initial = try Parameters(network, seed: 9)
        for name in report.applied { #expect(parameters[name] == base[name]) }
        for mismatch in report.mismatched { #expect(parameters[mismatch.name] == initial[mismatch.name]) }
        #expect(report.description.contains("head.bias [2], expected [3]"))
    }

    @Test("The report lists missing, unexpected and mismatched tensors", arguments: Safetensors.Precision.allCases)
    func file(precision: Safetensors.Precision) throws {
        var builder = NetworkBuilder(name: "two", input: TensorShape(channels: 2))
        builder.add(Dense(outputChannels: 2), named: "first")
        builder.add(Dense(outputChannels: 1), named: "second")
        let parameters = try Parameters(ParameterLayout(try builder.network()))
        let report = try withTemporaryFolder { folder in
            let url = folder.appending(path: "other.safetensors")
            try Safetensors.write(
                [
                    .init(name: "first.weight", shape: [2, 2], values: [1, 2, 3, 4]),
                    .init(name: "first.bias", shape: [2, 1], values: [5, 6]),
                    .init(name: "third.weight", shape: [1], values: [7]),
                ], as: precision, to: url
            ) { _ in [:] }
            return try parameters.load(from: Safetensors.File(contentsOf: url))
        }
        #expect(report.applied == ["first.weight"])
        #expect(report.missing == ["second.weight", "second.bias"])
        #expect(report.unused == ["third.weight"])
        #expect(report.mismatched == [.init(name: "first.bias", found: [2, 1], expected: [2])])
        #expect(parameters["first.weight"] == [1, 2, 3, 4])
        #expect(parameters["first.bias"] == [0, 0])
        #expect(
            report.description == """
                1 of 4 tensors loaded
                missing in the file: second.weight, second.bias
                not in the network: third.weight
                with another shape: first.bias [2, 1], expected [2]
                """)
    }

    @Test("All tensors of the same network are loaded")
    func complete() throws {
        let model = try sampleModel()
        let parameters = try Parameters(ParameterLayout(model.network))
        let report = parameters.load(from: model.parameters)
        #expect(report.isComplete)
        let count = parameters.layout.entries.count
        #expect(report.description == "\(count) of \(count) tensors loaded")
    }
}
