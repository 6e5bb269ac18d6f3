/// The levels of the image pyramid for detectors that are trained in tests.
///
/// They are the standard levels without the two largest, which have five sixths of all pixels that a detector scans.
package let shortPyramidLevels = [48, 64, 80, 112, 176, 272]
