import Foundation
import ImprintImages
import ImprintNetwork
import TestSupport
import Testing

@testable import ImprintCore
@testable import ImprintInterop
@testable import ImprintModel

/// The memory that writing a large model takes.
@Suite struct ExportMemoryTests {
    @Test("Writing a model takes less than a third of its size in memory, in any format", arguments: 0..<5)
    func fraction(
        format: Int
    ) throws {
        var net = NetworkBuilder(name: "large", input: TensorShape(height: 32, width: 32, channels: 3))
        net.add(Flatten())
        net.add(Dense(outputChannels: 2048))
        net.add(Dense(outputChannels: 2))
        net.add(Softmax())
        let network = try net.network()
        let parameters = try Parameters(network, seed: 1)
        let model = ModelFile(
            network: network, parameters: parameters, labels: ["a", "b"],
            preprocessing: Preprocessing(width: 32, height: 32, channels: 3))
        let bytes = parameters.layout.count * MemoryLayout<Float>.stride
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "model")
            let trial = ImportTrial {
                switch format {
                case 0: try model.writeONNX(to: url)
                case 1: try model.writeCoreML(to: url, options: CoreMLOptions(storagePrecision: .float16))
                case 2: try model.write(to: url, as: .float32)
                case 3: try model.write(to: url, as: .float16)
                default: try model.write(to: url, as: .int8)
                }
            }
            #expect(trial.error == nil)
            if let peak = trial.peak { #expect(3 * peak < bytes, "\(peak) of \(bytes)") }
        }
    }

    @Test("A tensor that exceeds the memory is rejected as too large, not as damaged") func outOfMemory() throws {
        #expect {
            try ImportError.Problem.checkMemory(forElements: 1 << 50)
        } throws: { error in
            let text = ImportError(path: "m.onnx", problem: try #require(error as? ImportError.Problem)).description
            return text.contains("not enough memory") && !text.contains("damaged")
        }
    }
}
