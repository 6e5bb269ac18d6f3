import Foundation
import ImprintImages
import ImprintModel
import ImprintNetwork
import TestSupport
import Testing

/// The memory usage of `imprint`, and its behaviour if memory is insufficient.
@Suite(.serialized) struct MemoryTests {
    private static var hasPillow: Bool { Python.has("PIL") }

    /// Runs `imprint` and returns its maximum resident memory in bytes, and its exit code.
    private func peak(_ arguments: [String]) throws -> (bytes: Int, status: Int) {
        let output = try Python.output(of: "CLITests/Fixtures/peak-memory.py", [tool.path] + arguments)
        let values = String(decoding: output, as: UTF8.self).split(whereSeparator: \.isWhitespace).compactMap {
            Int($0)
        }
        return (try #require(values.first), try #require(values.last))
    }

    private func classifier(side: Int, dense outputs: Int = 0) throws -> ModelFile {
        var net = NetworkBuilder(name: "classifier", input: TensorShape(height: side, width: side, channels: 3))
        if outputs > 0 {
            net.add(Flatten())
            net.add(Dense(outputChannels: outputs))
        } else {
            net.add(GlobalAveragePool())
        }
        net.add(Dense(outputChannels: 2))
        net.add(Softmax())
        let network = try net.network()
        return ModelFile(
            network: network, parameters: try Parameters(network, seed: 1), labels: ["a", "b"],
            preprocessing: Preprocessing(width: side, height: side, channels: 3))
    }

    @Test(
        "Classifying an image of 64 million pixels needs less memory than its pixels",
        .enabled(if: MemoryTests.hasPillow, "needs Pillow"), arguments: ["png", "webp"])
    func largeImage(format: String) throws {
        try withTemporaryFolder { folder in
            let (model, image) = (folder.appending(path: "m.imprint"), folder.appending(path: "p.\(format)"))
            try classifier(side: 16).write(to: model)
            _ = try Python.output(of: "CLITests/Fixtures/large-image.py", [image.path])
            let (bytes, status) = try peak(["classify", model.path, image.path])
            #expect(status == 0)
            // The decoded RGB pixels occupy 192 MB.
            #expect(bytes < 150_000_000)
        }
    }

    #if os(Linux)
        @Test("A photo that does not fit into memory is an out-of-memory error, not a damaged file")
        func outOfMemory() throws {
            try withTemporaryFolder { folder in
                let (model, photo) = (folder.appending(path: "m.imprint"), folder.appending(path: "p.jpg"))
                try classifier(side: 16).write(to: model)
                // A progressive JPEG whose header declares 14000x14000 pixels.
                var bytes = try ImageFile.encodeJPEG(RasterImage(width: 40, height: 24))
                let frame = try #require(bytes.indices.dropLast().first { bytes[$0] == 0xFF && bytes[$0 + 1] == 0xC0 })
                let side: [UInt8] = [0x36, 0xB0]  // 14000
                bytes[frame + 1] = 0xC2
                bytes.replaceSubrange((frame + 5)..<(frame + 9), with: side + side)
                try Data(bytes).write(to: photo)
                let result = try shell(
                    "ulimit -v 1000000; OPENBLAS_NUM_THREADS=1 \"$imprint\" classify m.imprint p.jpg", folder: folder)
                #expect(result.status == 1)
                #expect(result.errors.contains("not enough memory") && result.errors.contains("14000x14000"))
                #expect(!result.errors.contains("damaged"))
            }
        }

        @Test("Import and export succeed or report an error under any memory limit") func limits() throws {
            try withTemporaryFolder { folder in
                // The model has 1.6 million parameters.
                try classifier(side: 64, dense: 128).write(to: folder.appending(path: "m.imprint"))
                let all = try shell(
                    "\"$imprint\" export m.imprint --to onnx --output all.onnx && \"$imprint\" import all.onnx --output all.imprint",
                    folder: folder)
                #expect(all.status == 0)
                // Start from the smallest limit under which the tool starts.
                let script = """
                    export OPENBLAS_NUM_THREADS=1
                    begin=100000
                    while ! (ulimit -v $begin; "$imprint" --version) > v 2>&1; do begin=$((begin + 20000)); done
                    for more in 5000 15000 30000 60000 200000; do
                        (ulimit -v $((begin + more)); "$imprint" export m.imprint --to onnx --output o.onnx)
                        echo $?
                        (ulimit -v $((begin + more)); "$imprint" export m.imprint --to imprint --int8 --output o.imprint)
                        echo $?
                        (ulimit -v $((begin + more)); "$imprint" import all.onnx --output i.imprint)
                        echo $?
                    done
                    """
                let result = try shell(script, folder: folder)
                let statuses = result.output.split(separator: "\n").compactMap { Int($0) }
                #expect(statuses.count == 15)
                #expect(statuses.allSatisfy { [0, 1].contains($0) }, "\(statuses) \(result.errors)")
                #expect(statuses.suffix(3) == [0, 0, 0])
                #expect(!result.errors.contains("damaged"))
            }
        }
    #endif
}
