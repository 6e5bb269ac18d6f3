import Foundation
import Imprint
import TestSupport
import Testing

@testable import ImprintServe

/// The clients of other model servers.
@Suite("Inference clients") struct InferenceClientTests {
    private static let token = "0123456789abcdef"

    /// Starts a server with a token, and returns the JSON object that a script prints.
    /// - Parameter script: A script with the arguments ADDRESS, MODEL, PHOTO and TOKEN, in the folder Fixtures.
    private func results(of script: String, scheme: String) throws -> [String: Any] {
        let output = try withServer {
            $0.token = Self.token
        } _: { _, port in
            try withTemporaryFolder { folder in
                let photo = folder.appending(path: "photo.png")
                try greyPhoto(200).write(to: photo)
                return try Python.output(
                    of: "ImprintServeTests/Fixtures/\(script)",
                    ["\(scheme)127.0.0.1:\(port)", "light", photo.path, Self.token])
            }
        }
        return try #require(try JSONSerialization.jsonObject(with: output) as? [String: Any])
    }

    /// Returns whether the confidences are those of images of these grey values.
    private func areConfidences(_ found: Any?, of greys: [UInt8]) throws -> Bool {
        let predictor = try ImageClassifier(brightnessModel()).batchPredictor(maximumBatchSize: greys.count)
        let photos = try greys.map { BatchInput.image(.data(try greyPhoto($0))) }
        let expected = try predictor.predict(photos).map { try $0.get().confidences }
        guard let found = found as? [[Double]], found.count == expected.count else { return false }
        return zip(found.joined(), expected.joined()).allSatisfy { abs($0 - Double($1)) < 1e-5 }
    }

    @Test(
        "The client of Triton reads the metadata, and sends and receives tensors as binary data and as JSON",
        .enabled(
            if: Python.has("tritonclient", "geventhttpclient"),
            "IMPRINT_PYTHON is not set, or has no tritonclient; ./run test installs it"))
    func triton() throws {
        let results = try results(of: "call_server_triton.py", scheme: "")
        #expect(results["live"] as? Bool == true && results["ready"] as? Bool == true)
        #expect(results["server"] as? String == "imprint" && results["labels"] as? [String] == ["bright", "dark"])
        for isBinary in ["True", "False"] {
            #expect(try areConfidences(results["pixels \(isBinary)"], of: [200, 30]))
            #expect(try areConfidences(results["values \(isBinary)"], of: [200]))
            #expect(results["labels \(isBinary)"] as? [String] == ["bright", "dark"])
        }
        let classes = try #require(results["classes"] as? [String])
        #expect(classes.map { $0.split(separator: ":").dropFirst().joined(separator: ":") } == ["0:bright", "1:dark"])
        #expect(results["id"] as? String == "7" && results["all"] as? [String] == ["confidences", "labels"])
        #expect((results["error"] as? String)?.hasPrefix("The shape of pixels is [2, 5, 7, 2]") == true)
        #expect(results["status"] as? String == "400")
    }

    @Test(
        "The client of KServe sends and receives tensors as binary data and as JSON",
        .enabled(
            if: Python.has("kserve"),
            "IMPRINT_PYTHON is not set, or has no kserve; install it with pip, which downloads 50 packages"))
    func kserve() throws {
        let results = try results(of: "call_server_kserve.py", scheme: "http://")
        #expect(results["live"] as? Bool == true && results["ready"] as? Bool == true)
        for (key, greys) in [("pixels True", [200, 30]), ("pixels False", [200, 30]), ("picture", [200])]
            as [(String, [UInt8])]
        {
            let found = try #require(results[key] as? [String: Any])
            #expect(try areConfidences(found["confidences"], of: greys))
            #expect(found["labels"] as? [String] == greys.map { $0 > 128 ? "bright" : "dark" })
        }
    }
}
