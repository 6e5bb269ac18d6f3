#define INFINITY __builtin_inff()
float logf(float x);
float sqrtf(float x);
double fmax(double a, double b);
double round(double x);
