#if !canImport(ImageIO)
    internal import CTurboJPEG

    extension RasterImage {
        /// Returns the image after JPEG compression with the given quality (1…100).
        ///
        /// Colour has half the resolution (4:2:0), as in cameras and messengers.
        /// - Throws: `ImageError.unencodable` if memory runs out, or if a side is too long for a JPEG.
        package func compressed(quality: Int) throws(ImageError) -> RasterImage {
            precondition((1...100).contains(quality), "the quality of a JPEG must be 1 to 100, not \(quality)")
            guard let encoder = tjInitCompress() else { throw failure(nil) }
            defer { tjDestroy(encoder) }
            guard let decoder = tjInitDecompress() else { throw failure(nil) }
            defer { tjDestroy(decoder) }
            let (width, height) = (Int32(width), Int32(height))
            let format = Int32((channels == 1 ? TJPF_GRAY : channels == 3 ? TJPF_RGB : TJPF_RGBX).rawValue)
            let subsampling = Int32((channels == 1 ? TJSAMP_GRAY : TJSAMP_420).rawValue)
            var file: UnsafeMutablePointer<UInt8>?
            defer { tjFree(file) }
            var size: UInt = 0
            guard
                tjCompress2(
                    encoder, samples, width, 0, height, format, &file, &size, subsampling, Int32(quality),
                    TJFLAG_FASTDCT)
                    == 0
            else { throw failure(encoder) }
            var status: Int32 = 0
            let result = withNewSamples { target in
                status = tjDecompress2(decoder, file, size, target, width, 0, height, format, TJFLAG_FASTDCT)
            }
            guard status == 0 else { throw failure(decoder) }
            return result.withAlpha(of: self)
        }

        private func failure(_ handle: tjhandle?) -> ImageError {
            let message =
                handle.flatMap { tjGetErrorStr2($0) }.map { String(cString: $0) } ?? "the codec ran out of memory"
            return .unencodable(format: "JPEG", reason: message)
        }
    }
#endif
